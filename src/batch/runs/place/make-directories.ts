import { posix } from "node:path";
import { isBrigError } from "../../../errors.js";
import type { Sandbox, TarEntry } from "../../../sandbox/index.js";
import { containerOf, planOf, streamTar } from "../../../sandbox/index.js";
import { isRefusal, statOf, unlessRefused } from "./file-refusal.js";

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
  const made = canMakeInside(sandbox, directories) ? await tryInside(sandbox, directories) : nothingMade;
  if (made.isComplete) return made.directories.map(({ path }) => path);
  const missing = new Map(made.directories.map((directory) => [directory.path, directory]));
  for (const directory of directories)
    for (const path of await missingFrom(sandbox, directory.path, missing))
      missing.set(path, path === directory.path ? directory : parentAt(path));
  await makeByEngine(sandbox, [...missing.values()]);
  return [...missing.keys()];
}

/** Makes directories with these rights, each after those above it. One that exists gets them. */
export async function makeExactly(sandbox: Sandbox, directories: readonly NewDirectory[]): Promise<void> {
  if (canMakeInside(sandbox, directories)) {
    await mkdirEach(sandbox, directories);
    // One that existed may be right already.
    if (await standAs(sandbox, directories)) return;
  }
  await makeByEngine(sandbox, directories);
}

async function makeByEngine(sandbox: Sandbox, directories: readonly NewDirectory[]): Promise<void> {
  if (directories.length === 0) return;
  const { engine, containerId } = containerOf(sandbox);
  const entries = directories.map(({ path, mode, owner }): TarEntry => {
    return { path: path.slice(1), kind: "directory", mode, owner, modifiedAt: new Date() };
  });
  await engine.putArchive(containerId, "/", streamTar(entries));
}

/** Whether all of them are directories, and no links to some, and have these rights. */
export async function standAs(sandbox: Sandbox, directories: readonly NewDirectory[]): Promise<boolean> {
  const stand = await Promise.all(directories.map((directory) => standsAs(sandbox, directory)));
  return !stand.includes(false);
}

/** Whether a directory, and no link to one, has these rights. */
async function standsAs(sandbox: Sandbox, { path, mode, owner }: NewDirectory): Promise<boolean> {
  const found = await statOf(sandbox, path);
  if (found?.type !== "directory") return false;
  return (found.mode & 0o7777) === mode && found.uid === owner.uid && found.gid === owner.gid;
}

/** The runner does it if it has the rights: older engines start a program for each archive that they unpack. */
function canMakeInside(sandbox: Sandbox, directories: readonly NewDirectory[]): boolean {
  const { user } = planOf(sandbox);
  return [user, ...directories.map(({ owner }) => owner)].every(({ uid, gid }) => uid === 0 && gid === 0);
}

interface MadeInside {
  /** Directories that did not exist, each after those above it. */
  directories: readonly NewDirectory[];
  /** Whether nothing is left to do. */
  isComplete: boolean;
}

const nothingMade: MadeInside = { directories: [], isComplete: false };

/** Makes them and those above them without looking first, as each answer of the runner takes its time. */
async function tryInside(sandbox: Sandbox, directories: readonly NewDirectory[]): Promise<MadeInside> {
  const wanted = new Map<string, NewDirectory>();
  for (const { path } of directories)
    for (let at = posix.dirname(path); at !== "/"; at = posix.dirname(at)) wanted.set(at, parentAt(at));
  for (const directory of directories) wanted.set(directory.path, directory);
  const outcomes = await mkdirEach(sandbox, [...wanted.values()]);
  const of = (wanted: MkdirOutcome["outcome"]) =>
    outcomes.filter(({ outcome }) => outcome === wanted).map(({ directory }) => directory);
  const made = of("made");
  const [areRight, areThere] = await Promise.all([standAs(sandbox, made), areFound(sandbox, of("exists"))]);
  return { directories: made, isComplete: of("refused").length === 0 && areRight && areThere };
}

/** A link that leads nowhere keeps a directory from being made, and is none. */
async function areFound({ files }: Sandbox, directories: readonly NewDirectory[]): Promise<boolean> {
  const found = await Promise.all(directories.map(({ path }) => unlessRefused(files.stat(path))));
  return !found.includes(null);
}

interface MkdirOutcome {
  directory: NewDirectory;
  /** `exists`: the existing path may be anything, not only a directory. */
  outcome: "made" | "exists" | "refused";
}

/** Makes the directories of one depth at once. */
async function mkdirEach({ files }: Sandbox, directories: readonly NewDirectory[]): Promise<MkdirOutcome[]> {
  const mkdir = async (directory: NewDirectory): Promise<MkdirOutcome> => {
    const { path, mode } = directory;
    try {
      await files.mkdir(path, { mode, refuseSymlinks: true });
      return { directory, outcome: "made" };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { directory, outcome: error.code === "file.exists" ? "exists" : "refused" };
    }
  };
  const depthOf = ({ path }: NewDirectory) => path.replace(/\/$/, "").split("/").length;
  const outcomes: MkdirOutcome[] = [];
  for (const depth of [...new Set(directories.map(depthOf))].toSorted((one, other) => one - other)) {
    const atDepth = directories.filter((directory) => depthOf(directory) === depth);
    outcomes.push(...(await Promise.all(atDepth.map(mkdir))));
  }
  return outcomes;
}

function parentAt(path: string): NewDirectory {
  return { path, mode: 0o755, owner: { uid: 0, gid: 0 } };
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
