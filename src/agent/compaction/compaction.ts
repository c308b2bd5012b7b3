import type { ResponseItem } from "../../model/items.js";
import { normalised } from "../turn/history.js";

export const defaultCompactPrompt = `The room for this conversation is nearly used up. Everything but the user's own messages will be replaced by your next message, so write the note from which the work can go on without anything else. Call no tools.

Say, in this order and as briefly as exactness allows:
- what the user wants, with every condition and preference that was named;
- what was decided, and why;
- what is done: files changed or made (with paths), commands that matter and how they ended, sessions that still run (with their ids);
- what was found out that would be costly to find again: names, places in files, error texts word for word;
- what remains to be done, the next step first.`;

/** Without so many of the oldest items, and without the other halves of those that were a call or an output. */
export function withoutOldest(items: readonly ResponseItem[], count: number): ResponseItem[] {
  const left = items.slice(count);
  // An output whose call went goes with it. Calls come first: none is left whose output went.
  return normalised(left);
}
