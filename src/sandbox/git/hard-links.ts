import { setImmediate as nextTurn } from "node:timers/promises";
import { BrigError } from "../../errors.js";
import { type BytePath, isHardLinked, listNames, lstatOrNull, quoteBytePath } from "./byte-paths.js";
import type { HardLinkedFile } from "./git-directory.js";

const MAX_BLOCKED_MS = 10;

/**
 * Refuses protected files that have another name in a writable directory: a read-only mount over one name
 * does not keep a command from writing through the other. Searches the writable directories, which takes a
 * second for 200 000 files, only if one of the files has more names than `files` lists. Error:
 * `workspace.invalid` with both names.
 */
export async function refuseHardLinks(
  files: readonly HardLinkedFile[],
  writable: readonly BytePath[],
  isWritable: (path: BytePath) => boolean,
): Promise<void> {
  const sought = new Map<string, HardLinkedFile>();
  const paths = new Map<string, Set<BytePath>>();
  for (const file of files) paths.set(file.file, (paths.get(file.file) ?? new Set()).add(file.path));
  for (const file of files)
    if ((paths.get(file.file)?.size ?? 0) < file.linkCount) sought.set(file.file, file);
  if (sought.size === 0) return;
  let sliceEnd = performance.now() + MAX_BLOCKED_MS;
  const open = [...writable];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (performance.now() >= sliceEnd) {
      await nextTurn();
      sliceEnd = performance.now() + MAX_BLOCKED_MS;
    }
    if (isWritable(path)) searchDirectory(path, { sought, open, isWritable });
  }
}

interface Search {
  sought: ReadonlyMap<string, HardLinkedFile>;
  open: BytePath[];
  isWritable(path: BytePath): boolean;
}

function searchDirectory(path: BytePath, { sought, open, isWritable }: Search): void {
  for (const entry of namesIn(path)) {
    const child = `${path}/${entry.name}`;
    if (entry.isDirectory()) open.push(child);
    if (!entry.isFile() || !isHardLinked(child)) continue;
    const stat = lstatOrNull(child);
    const other = stat === null ? undefined : sought.get(`${stat.dev}:${stat.ino}`);
    if (other !== undefined && isWritable(child)) throw hardLinked(other.path, child);
  }
}

/** A directory that cannot be listed was refused by an earlier check, or is closed to commands as well. */
function namesIn(path: BytePath) {
  try {
    return listNames(path);
  } catch {
    return [];
  }
}

function hardLinked(path: BytePath, other: BytePath): BrigError {
  return new BrigError(
    `${quoteBytePath(path)} cannot be kept read-only: ${quoteBytePath(other)} is the same file by another name (a hard link)`,
    {
      code: "workspace.invalid",
      hint: "replace one of them with a copy (cp -p FILE FILE.new && mv FILE.new FILE), or use --sandbox read-only",
    },
  );
}
