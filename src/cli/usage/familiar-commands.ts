const BEGINS =
  "a sandbox begins with the command that needs it: brig run, brig exec, brig shell; one that lasts begins with brig up";
const ENDS =
  "to end a sandbox that lasts: brig stop, or brig rm; any other ends with its command; to remove what --keep has kept: brig gc --kept";
const LISTS = "to list sessions: brig sessions; running sandboxes: brig ps; images: brig image ls";

/** Commands of Docker and Codex that have other names in brig, with the hint for somebody who tries them. */
export const familiarCommands: Readonly<Record<string, string>> = {
  prune: "to remove what was left behind: brig gc; images: brig image prune",
  inspect: "to see what a session's sandbox may do: brig sessions proof ID",
  build: "to build the images: brig image build",
  pull: "to build the images: brig image build; another image: docker pull",
  images: "to list the images: brig image ls",
  list: LISTS,
  ls: LISTS,
  create: BEGINS,
  start: BEGINS,
  kill: ENDS,
  down: ENDS,
};

/** The hint for a command that has another name in brig. Null if there is none. */
export function hintForCommand(word: string): string | null {
  return Object.hasOwn(familiarCommands, word) ? (familiarCommands[word] as string) : null;
}
