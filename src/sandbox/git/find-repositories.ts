import { lstatSync, type Stats } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { type BytePath, countsSubdirectories, listNames, quoteBytePath } from "./host-names.js";

export interface FoundRepositories {
  /** Everything below the directory with the name `.git`, of whatever kind. */
  dotGits: BytePath[];
  /** Directories that hold what a bare repository holds. Git takes one for a repository when it is started in it. */
  bare: BytePath[];
}

/** So long the event loop stands still at a time. */
const SLICE_MS = 10;
/** A tree of a million directories takes a few seconds. */
const LIMIT_MS = 60_000;

/**
 * Looks through a tree for repositories; links are not followed, and what lies in a `.git` is not looked at. What cannot be looked
 * through though a command could write there is `workspace.invalid`.
 */
export async function findRepositories(root: BytePath): Promise<FoundRepositories> {
  const found: FoundRepositories = { dotGits: [], bare: [] };
  const device = countsSubdirectories(root) ? lookAtDirectory(root)?.dev : undefined;
  const started = performance.now();
  let sliceEnd = started + SLICE_MS;
  const open = [root];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (performance.now() >= sliceEnd) {
      if (performance.now() - started > LIMIT_MS) throw tooLarge(root);
      await nextTurn();
      sliceEnd = performance.now() + SLICE_MS;
    }
    lookThrough(path, { found, open, device });
  }
  return found;
}

interface Search {
  found: FoundRepositories;
  open: BytePath[];
  /** Of the file system where a link count of 2 means that there is no directory inside. */
  device: number | undefined;
}

function lookThrough(path: BytePath, { found, open, device }: Search): void {
  try {
    const stat = device === undefined ? undefined : lookAtDirectory(path);
    if (stat !== undefined && stat.nlink === 2 && stat.dev === device) {
      // Nothing below but files: it can hold no repository but one that a file points to.
      if (lookAtDirectory(`${path}/.git`) !== undefined) found.dotGits.push(`${path}/.git`);
      return;
    }
    let repositoryNames = 0;
    for (const entry of listNames(path)) {
      const { name } = entry;
      if (name === ".git") found.dotGits.push(`${path}/.git`);
      else if (entry.isDirectory()) open.push(`${path}/${name}`);
      if (name === "HEAD" || name === "objects" || name === "refs") repositoryNames += 1;
    }
    if (repositoryNames === 3) found.bare.push(path);
  } catch (error) {
    refuseUnlessClosed(path, error);
  }
}

/** What is gone by now, or is another user's and closed to ours, is closed to every command as well. */
function refuseUnlessClosed(path: BytePath, error: unknown): void {
  const errno = errnoOf(error);
  if (errno === "ENOENT" || errno === "ENOTDIR") return;
  if (errno === "EACCES" && lookAtDirectory(path)?.uid !== process.getuid?.()) return;
  throw new BrigError(`${quoteBytePath(path)} cannot be searched for git repositories: ${errno}`, {
    code: "workspace.invalid",
    hint: "a command could change a repository there: make the directory readable or remove it, or use --sandbox read-only",
    cause: error,
  });
}

function lookAtDirectory(path: BytePath): Stats | undefined {
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
