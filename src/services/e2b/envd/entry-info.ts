import { posix } from "node:path";
import { type FileType, type PortableStat, planOf, type Sandbox } from "../../../sandbox/index.js";

/** How E2B describes what is at a path. */
export interface EntryInfo {
  name: string;
  type: string;
  path: string;
  size: string;
  mode: number;
  permissions: string;
  owner: string;
  group: string;
  modifiedTime: string;
  symlinkTarget?: string;
}

interface EntryPlace {
  sandbox: Sandbox;
  /** What the sandbox's own user is called. */
  user: string;
  signal: AbortSignal;
}

/** The type of a link is that of what it leads to, if that is there. Errors: `file.*`. */
export async function entryInfo(path: string, { sandbox, user, signal }: EntryPlace): Promise<EntryInfo> {
  const { files } = sandbox;
  const stat = await files.stat(path, { followSymlinks: false, signal });
  const isLink = stat.type === "symlink";
  const followed = isLink ? await files.stat(path, { signal }).catch(() => null) : stat;
  signal.throwIfAborted();
  const own = planOf(sandbox).user;
  const nameOf = (id: number, ownId: number) => (id === ownId ? user : id === 0 ? "root" : `${id}`);
  return {
    ...{ name: posix.basename(path), path },
    type: typeName(followed?.type ?? "symlink"),
    size: `${stat.sizeBytes}`,
    mode: followed?.mode ?? stat.mode,
    permissions: permissionsOf(stat),
    ...{ owner: nameOf(stat.uid, own.uid), group: nameOf(stat.gid, own.gid) },
    modifiedTime: timeText(stat.modifiedMs),
    ...(isLink && { symlinkTarget: posix.resolve(posix.dirname(path), stat.linkTarget ?? "") }),
  };
}

/** What is known of an entry whose name cannot be sent, since it is not UTF-8. */
export function unnamedEntry(path: string, type: FileType): EntryInfo {
  return {
    ...{ name: posix.basename(path), type: typeName(type), path, size: "0", mode: 0, permissions: "" },
    ...{ owner: "", group: "", modifiedTime: timeText(0) },
  };
}

function typeName(type: FileType): string {
  if (type === "file") return "FILE_TYPE_FILE";
  if (type === "directory") return "FILE_TYPE_DIRECTORY";
  return type === "symlink" ? "FILE_TYPE_SYMLINK" : "FILE_TYPE_UNSPECIFIED";
}

const letterOf: Partial<Record<FileType, string>> = {
  directory: "d",
  symlink: "L",
  fifo: "p",
  socket: "S",
  "char-device": "Dc",
  "block-device": "D",
};

function permissionsOf({ type, mode }: PortableStat): string {
  const bits = [..."rwxrwxrwx"].map((letter, index) => (mode & (0o400 >> index) ? letter : "-"));
  return `${letterOf[type] ?? "-"}${bits.join("")}`;
}

const LAST_MS = Date.UTC(9999, 11, 31);

/** A program in the sandbox may set any time; one beyond what can be written is cut. */
function timeText(modifiedMs: number): string {
  return new Date(Math.min(Math.max(0, modifiedMs), LAST_MS)).toISOString();
}
