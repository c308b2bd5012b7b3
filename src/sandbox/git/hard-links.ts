import { setImmediate as nextTurn } from "node:timers/promises";
import { BrigError } from "../../errors.js";
import type { LinkedFile } from "./git-directory.js";
import { type BytePath, hasOtherNames, listNames, lookAt, quoteBytePath } from "./host-names.js";

/** So long the event loop stands still at a time. */
const SLICE_MS = 10;

/**
 * A file with a second name in a writable directory can be changed through that one, whatever is mounted over the first. Only
 * where a file has more names than were found in read-only places are the writable directories looked through for another,
 * which costs a second for 200 000 files. Error: `workspace.invalid` with both names.
 */
export async function refuseSharedFiles(
  files: readonly LinkedFile[],
  writable: readonly BytePath[],
  isWritable: (path: BytePath) => boolean,
): Promise<void> {
  const sought = new Map<string, LinkedFile>();
  const paths = new Map<string, Set<BytePath>>();
  for (const file of files) paths.set(file.file, (paths.get(file.file) ?? new Set()).add(file.path));
  for (const file of files) if ((paths.get(file.file)?.size ?? 0) < file.names) sought.set(file.file, file);
  if (sought.size === 0) return;
  let sliceEnd = performance.now() + SLICE_MS;
  const open = [...writable];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (performance.now() >= sliceEnd) {
      await nextTurn();
      sliceEnd = performance.now() + SLICE_MS;
    }
    if (isWritable(path)) lookThrough(path, { sought, open, isWritable });
  }
}

interface Search {
  sought: ReadonlyMap<string, LinkedFile>;
  open: BytePath[];
  isWritable(path: BytePath): boolean;
}

function lookThrough(path: BytePath, { sought, open, isWritable }: Search): void {
  for (const entry of namesIn(path)) {
    const child = `${path}/${entry.name}`;
    if (entry.isDirectory()) open.push(child);
    if (!entry.isFile() || !hasOtherNames(child)) continue;
    const stat = lookAt(child);
    const other = stat === null ? undefined : sought.get(`${stat.dev}:${stat.ino}`);
    if (other !== undefined && isWritable(child)) throw shared(other.path, child);
  }
}

/** Whatever cannot be listed was refused before, or is closed to commands too. */
function namesIn(path: BytePath) {
  try {
    return listNames(path);
  } catch {
    return [];
  }
}

function shared(path: BytePath, other: BytePath): BrigError {
  return new BrigError(
    `${quoteBytePath(path)} cannot be kept read-only: ${quoteBytePath(other)} is the same file by another name (a hard link)`,
    {
      code: "workspace.invalid",
      hint: "make a copy of its own in place of one of them (cp -p FILE FILE.new && mv FILE.new FILE), or use --sandbox read-only",
    },
  );
}
