import type { Stats } from "node:fs";
import { lstat, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type HostGit, hostGit, reasonOf, refused } from "./host-git.js";

/** A repository of this machine that can receive a branch. */
export interface HostRepository {
  readonly git: HostGit;
  readonly format: "sha1" | "sha256";
  /** Settings that turn off programs that the repository's own configuration would run. */
  readonly silencing: readonly (readonly [string, string])[];
  /** The content of its `shallow` file; null if its history is complete. */
  readonly shallow: Buffer | null;
  readonly refs: readonly HostRef[];
  /** Whether its configuration has each commit signed. */
  readonly signsCommits: boolean;
}

interface HostRef {
  name: string;
  /** The id of the object that it points to, which may be an annotated tag. */
  id: string;
}

const SHALLOW_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads the repository whose `.git` is in this directory, without running a program that its configuration
 * names. Error: `branch.refused` with the reason why it cannot receive a branch.
 */
export async function readHostRepository(
  workspace: string,
  { program }: { program: string },
): Promise<HostRepository> {
  const directory = join(workspace, ".git");
  await requireDirectory(directory);
  const git = hostGit(directory, { program });
  const settings = await readSettings(git);
  refusePartial(directory, settings);
  const silencing = silenced(settings);
  const format = await readFormat(git);
  const [refs, shallow] = await Promise.all([readRefs(git), readShallow(directory)]);
  return { git, format, silencing, shallow, refs, signsCommits: signsCommits(settings) };
}

async function requireDirectory(directory: string): Promise<void> {
  const quoted = JSON.stringify(directory);
  const found = await statOrNull(directory);
  if (found === null)
    throw refused(
      `${quoted} does not exist, so there is no repository for a branch`,
      "use the top directory of a git repository as the workspace, or git init there, or leave out --git branch",
    );
  if (found.isFile())
    throw refused(
      `${quoted} is a file: the workspace is a linked worktree or a submodule, whose repository lies elsewhere`,
      "use a clone of its own as the workspace, or leave out --git branch",
    );
  if (!found.isDirectory())
    throw refused(`${quoted} is not a directory`, "replace it with the repository itself");
  if ((await statOrNull(join(directory, "commondir"))) !== null)
    throw refused(`${quoted} belongs to a linked worktree`, "use the main worktree as the workspace");
  for (const name of ["HEAD", "objects", "refs"])
    if ((await stat(join(directory, name)).catch(() => null)) === null)
      throw refused(
        `${quoted} is not a git repository: it has no ${name}`,
        "repair it: git fsck may say more",
      );
}

async function statOrNull(path: string): Promise<Stats | null> {
  return await lstat(path).catch(() => null);
}

async function readSettings(git: HostGit): Promise<readonly (readonly [string, string])[]> {
  const result = await git.run(["config", "--list", "--null"]);
  if (result.exitCode !== 0) throw unreadable(git, reasonOf(result));
  return result.stdout
    .toString("utf8")
    .split("\0")
    .filter((one) => one !== "")
    .map((one) => {
      const end = one.indexOf("\n");
      return end < 0 ? ([one, ""] as const) : ([one.slice(0, end), one.slice(end + 1)] as const);
    });
}

/** Refuses a partial clone: commits could not be checked before its missing objects have been fetched. */
function refusePartial(directory: string, settings: readonly (readonly [string, string])[]): void {
  const isPartial = settings.some(
    ([name, value]) =>
      name === "extensions.partialclone" || (/^remote\..*\.promisor$/.test(name) && !isFalse(value)),
  );
  if (!isPartial) return;
  throw refused(
    `${JSON.stringify(directory)} is a partial clone, whose missing objects cannot be checked`,
    "use a complete clone as the workspace, or leave out --git branch",
  );
}

function isFalse(value: string): boolean {
  return /^(?:false|no|off|0)$/i.test(value);
}

function signsCommits(settings: readonly (readonly [string, string])[]): boolean {
  const setting = settings.findLast(([name]) => name === "commit.gpgsign");
  return setting !== undefined && !isFalse(setting[1]);
}

/** Turns off the hooks that newer versions of git run because the configuration names them. */
function silenced(settings: readonly (readonly [string, string])[]): readonly (readonly [string, string])[] {
  const names = settings.flatMap(([name]) => /^hook\.([\s\S]+)\.[^.]+$/.exec(name)?.[1] ?? []);
  return [...new Set(names)].map((name) => [`hook.${name}.enabled`, "false"] as const);
}

async function readFormat(git: HostGit): Promise<HostRepository["format"]> {
  const result = await git.run(["rev-parse", "--show-object-format"]);
  const format = result.stdout.toString("utf8").trim();
  if (result.exitCode === 0 && (format === "sha1" || format === "sha256")) return format;
  throw unreadable(git, reasonOf(result));
}

async function readRefs(git: HostGit): Promise<HostRef[]> {
  const result = await git.run(["for-each-ref", "--format=%(objectname) %(refname)"]);
  const head = await git.run(["rev-parse", "--verify", "--quiet", "HEAD"]);
  if (result.exitCode !== 0) throw unreadable(git, reasonOf(result));
  const lines = [
    ...result.stdout.toString("utf8").split("\n"),
    `${head.stdout.toString("utf8").trim()} HEAD`,
  ];
  return lines.flatMap((line) => {
    const [, id, name] = /^([0-9a-f]{40}|[0-9a-f]{64}) (.+)$/.exec(line) ?? [];
    return id === undefined || name === undefined ? [] : [{ id, name }];
  });
}

async function readShallow(directory: string): Promise<Buffer | null> {
  const file = join(directory, "shallow");
  const found = await statOrNull(file);
  if (found === null || found.size === 0) return null;
  if (!found.isFile() || found.size > SHALLOW_MAX_BYTES)
    throw refused(
      `${JSON.stringify(file)} is not a file that git would have written`,
      "repair the repository",
    );
  return await readFile(file);
}

function unreadable(git: HostGit, reason: string): Error {
  return refused(
    `git cannot read the repository ${JSON.stringify(git.directory)}: ${reason}`,
    "repair it: git fsck may say more",
  );
}

const LOCKS = ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"];
/** The time that a short command of git on this machine may take. */
const LOCK_PATIENCE_MS = 1000;
const LOCK_PAUSE_MS = 100;

/** The path of a lock that a git of this machine has left in the repository, or still has; null if there is none. */
export async function leftLock(workspace: string): Promise<string | null> {
  const find = async () => {
    const paths = LOCKS.map((name) => join(workspace, ".git", name));
    const found = await Promise.all(paths.map(statOrNull));
    return paths.find((_, at) => found[at] !== null) ?? null;
  };
  let lock = await find();
  for (let waitedMs = 0; lock !== null && waitedMs < LOCK_PATIENCE_MS; waitedMs += LOCK_PAUSE_MS) {
    await pause(LOCK_PAUSE_MS);
    lock = await find();
  }
  return lock;
}

/**
 * Error: `branch.refused` for a repository that borrows objects from another one. A sandbox does not see the
 * other one, so commands in it could not read the history.
 */
export async function requireOwnObjects(workspace: string): Promise<void> {
  const file = join(workspace, ".git", "objects", "info", "alternates");
  const found = await statOrNull(file);
  if (found === null || found.size === 0) return;
  throw refused(
    `${JSON.stringify(join(workspace, ".git"))} borrows objects from another repository, which a sandbox does not see`,
    `copy them: git repack -a -d && rm ${file}; or leave out --git branch`,
  );
}
