const BEGINS = "a sandbox begins with the command that needs it: brig run, brig exec, brig shell";
const ENDS =
  "a sandbox ends with the command that opened it, so end that; to remove what --keep has kept: brig gc --kept";
const LISTS = "to list sessions: brig sessions; running sandboxes: brig ps; images: brig image ls";

/** Commands of Docker and Codex that have other names in brig, with the hint for somebody who tries them. */
export const familiarCommands: Readonly<Record<string, string>> = {
  rm: "to delete a session: brig sessions delete ID; to remove containers that were left behind: brig gc",
  prune: "to remove what was left behind: brig gc; images: brig image prune",
  logs: "to see what was done in a session: brig sessions show ID",
  inspect: "to see what a session's sandbox may do: brig sessions proof ID",
  build: "to build the images: brig image build",
  pull: "to build the images: brig image build; another image: docker pull",
  images: "to list the images: brig image ls",
  version: "to see the version: brig --version",
  fork: "to copy a session: brig sessions fork ID",
  list: LISTS,
  ls: LISTS,
  create: BEGINS,
  start: BEGINS,
  up: BEGINS,
  stop: ENDS,
  kill: ENDS,
  down: ENDS,
  attach: "nothing can enter a running sandbox from outside; for a shell in a new one: brig shell",
  cp: "files go in and out through the current directory, in which a sandbox works; for another one: -C DIR, --add-dir DIR",
};

/** The hint for a command that has another name in brig. Null if there is none. */
export function hintForCommand(word: string): string | null {
  return Object.hasOwn(familiarCommands, word) ? (familiarCommands[word] as string) : null;
}
