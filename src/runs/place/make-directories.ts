import { posix } from "node:path";
import { streamTar, type TarEntry } from "../../docker/calls/tar.js";
import { isBrigError } from "../../errors.js";
import { openedSandboxOf, type Sandbox } from "../../sandbox/sandbox.js";

export interface NewDirectory {
  path: string;
  mode: number;
  owner: { uid: number; gid: number };
}

/**
 * Makes directories that do not exist yet, with the rights of root, whoever the sandbox's user is. Those above them
 * belong to root. Only while nothing of an agent runs in the container. Resolves to the paths of all that it made.
 */
export async function makeDirectories(
  sandbox: Sandbox,
  directories: readonly NewDirectory[],
): Promise<string[]> {
  const missing = new Map<string, NewDirectory>();
  for (const directory of directories) {
    for (const path of await missingFrom(sandbox, directory.path, missing)) {
      const above = { path, mode: 0o755, owner: { uid: 0, gid: 0 } };
      missing.set(path, path === directory.path ? directory : above);
    }
  }
  await makeExactly(sandbox, [...missing.values()]);
  return [...missing.keys()];
}

/** Makes directories with these rights, in this order. One that exists gets them. */
export async function makeExactly(sandbox: Sandbox, directories: readonly NewDirectory[]): Promise<void> {
  if (directories.length === 0 || (await areMadeInside(sandbox, directories))) return;
  const { engine, containerId } = openedSandboxOf(sandbox);
  const entries = directories.map(({ path, mode, owner }): TarEntry => {
    return { path: path.slice(1), kind: "directory", mode, owner, modifiedAt: new Date() };
  });
  await engine.putArchive(containerId, "/", streamTar(entries));
}

/** Whether a directory, and no link to one, has these rights. */
export async function standsAs({ files }: Sandbox, { path, mode, owner }: NewDirectory): Promise<boolean> {
  const found = await unlessRefused(files.stat(path, { followSymlinks: false }));
  if (found?.type !== "directory") return false;
  return (found.mode & 0o7777) === mode && found.uid === owner.uid && found.gid === owner.gid;
}

/** The runner does it if it has the rights: older engines start a program for each archive that they unpack. */
async function areMadeInside(sandbox: Sandbox, directories: readonly NewDirectory[]): Promise<boolean> {
  const { user } = openedSandboxOf(sandbox).plan;
  const isRoot = ({ uid, gid }: NewDirectory["owner"]) => uid === 0 && gid === 0;
  if (![user, ...directories.map(({ owner }) => owner)].every(isRoot)) return false;
  for (const directory of directories) {
    const { path, mode } = directory;
    // One that exists may be right already.
    await unlessRefused(sandbox.files.mkdir(path, { mode, refuseSymlinks: true }));
    if (!(await standsAs(sandbox, directory))) return false;
  }
  return true;
}

/** Null for what the kernel refuses. */
async function unlessRefused<T>(operation: Promise<T>): Promise<T | null> {
  try {
    return await operation;
  } catch (error) {
    if (isBrigError(error) && error.code.startsWith("file.")) return null;
    throw error;
  }
}

/** The path and those above it that neither exist nor are planned, the highest first. */
async function missingFrom(
  { files }: Sandbox,
  path: string,
  planned: ReadonlyMap<string, NewDirectory>,
): Promise<string[]> {
  const missing: string[] = [];
  for (let at = path; at !== "/" && !planned.has(at); at = posix.dirname(at)) {
    try {
      await files.stat(at);
      break;
    } catch (error) {
      if (!isBrigError(error, "file.not-found")) throw error;
      missing.unshift(at);
    }
  }
  return missing;
}
