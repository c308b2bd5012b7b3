import { dirname, join, resolve } from "node:path";
import { readWorkspaceFile } from "../config/workspace-file.js";

/** No path is deeper in a repository than this. */
const MOST_LEVELS = 64;

/**
 * The branch that is checked out in a workspace on this machine, as its repository says. Null without one, and for what cannot be
 * read. An agent may have written all of it: nothing is run and no link is followed for it.
 */
export async function workspaceBranch(workspace: string): Promise<string | null> {
  let directory = workspace;
  for (let level = 0; level < MOST_LEVELS; level++) {
    const head = (await textOf(join(directory, ".git", "HEAD"))) ?? (await linkedHead(directory));
    if (head !== null) return branchIn(head);
    if (dirname(directory) === directory) return null;
    directory = dirname(directory);
  }
  return null;
}

/** The `HEAD` of a further work tree, whose `.git` is a file that names its git directory. */
async function linkedHead(directory: string): Promise<string | null> {
  const pointer = await textOf(join(directory, ".git"));
  const target = /^gitdir: ([^\0\n]+)\n?$/.exec(pointer ?? "")?.[1];
  return target === undefined ? null : await textOf(join(resolve(directory, target), "HEAD"));
}

function branchIn(head: string): string | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no branch has them in its name.
  return /^ref: refs\/heads\/([^\x00-\x20\x7f]{1,250})\n?$/.exec(head)?.[1] ?? null;
}

async function textOf(file: string): Promise<string | null> {
  const read = await readWorkspaceFile(file).catch(() => null);
  return read?.kind === "text" ? read.text : null;
}
