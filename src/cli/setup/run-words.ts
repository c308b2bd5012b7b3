/** What `brig PROMPT` adds to `brig run PROMPT`: the prompt begins a conversation, and is not all there is to do. */
export const CONVERSE = "--converse";
