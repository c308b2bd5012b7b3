import { BrigError, isBrigError } from "../../../../errors.js";
import type { ContainerChange, FileStat, Sandbox } from "../../../../sandbox/index.js";
import { makeExactly, type NewDirectory } from "../../place/make-directories.js";
import type { Originals } from "./originals.js";

/** The root directory, and those of programs, libraries and settings. What is deeper in /etc may belong to services. */
const ofSystem = /^\/(?:(?:usr|lib\d*|s?bin)(?:\/.*)?|etc)?$/;
const WRITE_FOR_OTHERS = 0o022;
const STICKY = 0o1000;
const ROOT = { uid: 0, gid: 0 };
/** The engine takes a while to say what a directory was. */
const MAX_LOOKUPS = 200;

/**
 * Closes directories of the system that the agent has opened for other users than root: code of the agent that the tests
 * run as such a user could otherwise put other programs, or other tests, in the place of those there. Resolves to the paths.
 */
export async function closeOpenedDirectories(
  sandbox: Sandbox,
  { changes, originals }: { changes: readonly ContainerChange[]; originals: Originals },
): Promise<string[]> {
  const changed = changes.filter(({ kind, path }) => kind !== "deleted" && ofSystem.test(path));
  const closed: NewDirectory[] = [];
  let lookups = 0;
  const hasOpenRoot = await closeRoot(sandbox);
  for (const { path } of changed) {
    const stat = await statOf(sandbox, path);
    if (stat?.type !== "directory" || !isOpen(stat)) continue;
    const isForAll = (stat.mode & 0o002) !== 0;
    const original = isForAll || lookups++ >= MAX_LOOKUPS ? null : await originals.entry(path);
    const wanted =
      original?.kind === "directory"
        ? { mode: original.mode & 0o7777, owner: { uid: original.uid, gid: original.gid } }
        : { mode: stat.mode & 0o7777 & ~WRITE_FOR_OTHERS, owner: ROOT };
    if (!isSame(stat, wanted)) closed.push({ path, ...wanted });
  }
  await makeExactly(sandbox, closed);
  return [...(hasOpenRoot ? ["/"] : []), ...closed.map(({ path }) => path)];
}

/** The engine neither names the root directory nor changes it. The image's own program, which is put back by now, does. */
async function closeRoot(sandbox: Sandbox): Promise<boolean> {
  const before = await statOf(sandbox, "/");
  if (before === null || !isOpen(before)) return false;
  for (const argv of [
    ["/bin/chown", "0:0", "/"],
    ["/bin/chmod", "755", "/"],
  ])
    await sandbox.exec(argv, { cwd: "/", timeoutMs: 60_000 });
  const after = await statOf(sandbox, "/");
  if (after !== null && !isOpen(after)) return true;
  throw new BrigError("the root directory is open to everybody, and cannot be closed", {
    code: "file.failed",
  });
}

function isOpen({ mode, uid }: FileStat): boolean {
  return uid !== 0 || ((mode & WRITE_FOR_OTHERS) !== 0 && (mode & STICKY) === 0);
}

function isSame({ mode, uid, gid }: FileStat, wanted: Omit<NewDirectory, "path">): boolean {
  return (mode & 0o7777) === wanted.mode && uid === wanted.owner.uid && gid === wanted.owner.gid;
}

async function statOf({ files }: Sandbox, path: string): Promise<FileStat | null> {
  try {
    return await files.stat(path, { followSymlinks: false });
  } catch (error) {
    if (isBrigError(error) && error.code.startsWith("file.")) return null;
    throw error;
  }
}
