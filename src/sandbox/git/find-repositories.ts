import { lstatSync, type Stats } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { isTelling } from "../receipt/obeyed-names.js";
import { type BytePath, countsSubdirectories, listNames, quoteBytePath } from "./byte-paths.js";

export interface FoundRepositories {
  /** Everything named `.git`, whether file, directory or link. */
  dotGits: BytePath[];
  /** Directories with the parts of a repository: git treats one as such when it is started there. */
  bare: BytePath[];
  /** Directories whose names make something obeyed that is in them. */
  telling: BytePath[];
}

const MAX_BLOCKED_MS = 10;
/** A tree of a million directories takes a few seconds. */
const MAX_SEARCH_MS = 60_000;

/**
 * Searches a tree without following links or entering a `.git`. Error: `workspace.invalid` for a directory
 * that cannot be searched although a command could write to it.
 */
export async function findRepositories(root: BytePath): Promise<FoundRepositories> {
  const found: FoundRepositories = { dotGits: [], bare: [], telling: [] };
  const start = root.lastIndexOf("/") + 1;
  const device = countsSubdirectories(root) ? lstatDirectory(root)?.dev : undefined;
  const started = performance.now();
  let sliceEnd = started + MAX_BLOCKED_MS;
  const open = [root];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (performance.now() >= sliceEnd) {
      if (performance.now() - started > MAX_SEARCH_MS) throw tooLarge(root);
      await nextTurn();
      sliceEnd = performance.now() + MAX_BLOCKED_MS;
    }
    searchDirectory(path, { found, open, device, start });
  }
  return found;
}

interface Search {
  found: FoundRepositories;
  open: BytePath[];
  /** A device on which a link count of 2 means that a directory has no subdirectories. */
  device: number | undefined;
  /** The index in every path at which the name of the root begins. */
  start: number;
}

function searchDirectory(path: BytePath, { found, open, device, start }: Search): void {
  try {
    const stat = device === undefined ? undefined : lstatDirectory(path);
    if (stat !== undefined && stat.nlink === 2 && stat.dev === device) {
      // A directory that has no subdirectories can contain no repository, only a `.git` file that points to one.
      if (lstatDirectory(`${path}/.git`) !== undefined) found.dotGits.push(`${path}/.git`);
      return;
    }
    const parts = new Set<string>();
    for (const entry of listNames(path)) {
      const { name } = entry;
      if (name === ".git") found.dotGits.push(`${path}/.git`);
      else if (entry.isDirectory()) {
        open.push(`${path}/${name}`);
        if (isTelling(`${path}/${name}`.slice(start))) found.telling.push(`${path}/${name}`);
      }
      if (isRepositoryPart(name)) parts.add(name.toLowerCase());
    }
    if (isRepository(parts)) found.bare.push(path);
  } catch (error) {
    refuseUnlessInaccessible(path, error);
  }
}

/** Ignores what no command can write to: a directory that is gone, or is closed by another user. */
function refuseUnlessInaccessible(path: BytePath, error: unknown): void {
  const errno = errnoOf(error);
  if (errno === "ENOENT" || errno === "ENOTDIR") return;
  if (errno === "EACCES" && lstatDirectory(path)?.uid !== process.getuid?.()) return;
  throw new BrigError(`${quoteBytePath(path)} cannot be searched for git repositories: ${errno}`, {
    code: "workspace.invalid",
    hint: "a command could change a repository there: make the directory readable or remove it, or use --sandbox read-only",
    cause: error,
  });
}

function lstatDirectory(path: BytePath): Stats | undefined {
  return lstatSync(Buffer.from(path, "latin1"), { throwIfNoEntry: false });
}

function tooLarge(root: BytePath): BrigError {
  return new BrigError(
    `${quoteBytePath(root)} has too many directories to be searched for git repositories`,
    {
      code: "workspace.invalid",
      hint: "choose a directory further down, or use --sandbox read-only",
    },
  );
}

/** The names in lower case. */
export const REPOSITORY_PARTS: ReadonlySet<string> = new Set(["head", "objects", "refs", "commondir"]);

/** Whether git looks for this name in a directory to find out whether it is a repository. */
function isRepositoryPart(name: string): boolean {
  return REPOSITORY_PARTS.has(name.toLowerCase());
}

/**
 * Whether git takes a directory with these parts, in lower case, for a repository, whatever it is called. The objects
 * and refs may be in another directory, which `commondir` names. Case does not matter on some file systems.
 */
export function isRepository(parts: ReadonlySet<string>): boolean {
  return parts.has("head") && (parts.has("commondir") || (parts.has("objects") && parts.has("refs")));
}
