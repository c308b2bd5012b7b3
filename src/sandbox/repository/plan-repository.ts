import { lstatSync } from "node:fs";
import { join, resolve } from "node:path";
import { BrigError, isBrigError } from "../../errors.js";
import { listNames, toBytePath } from "../git/byte-paths.js";
import type { GitSetting } from "../git/repository-config.js";
import { isAtOrBelow } from "../plan/paths.js";
import type { PlannedMount } from "../plan/plan.js";
import { checkDirectory, type DirectoryCheck, isClosedDirectory, submountsBelow } from "../plan/workspace.js";
import {
  borrowedObjects,
  findRepository,
  type OutsideRepository,
  type Surroundings,
  settingsIn,
  unusable,
} from "./find-repository.js";

export interface RepositoryRequest extends Omit<Surroundings, "owners"> {
  check: Omit<DirectoryCheck, "purpose">;
  /** Whether a read-only mount makes the mounts below it read-only as well. */
  closesSubmounts: boolean;
  /** The user who runs brig. */
  hostUid: number;
}

export interface PlannedRepository {
  /** Read-only. */
  mounts: PlannedMount[];
  /**
   * The directory above the workspace whose `.git` is mounted, else null. Git asks who owns it, and wants to be told to
   * look beyond a mount point.
   */
  top: string | null;
  /** Problems: each one says what does not work. */
  notices: BrigError[];
}

/** Plans how a sandbox sees the repository around its workspace. Never fails: what cannot be shown is a notice. */
export async function planRepository(request: RepositoryRequest): Promise<PlannedRepository> {
  try {
    return await planned(request);
  } catch (error) {
    if (isBrigError(error)) return { mounts: [], top: null, notices: [notice(error)] };
    throw error;
  }
}

async function planned(request: RepositoryRequest): Promise<PlannedRepository> {
  const { workspace, check, hostUid } = request;
  const owners = [hostUid, lstatSync(workspace).uid];
  const found = findRepository({ ...request, owners });
  if (found === null) return { mounts: [], top: null, notices: [] };
  const isAbove = found.top !== workspace && found.paths.length > 0;
  // Somebody who works below a directory such as the home directory does not mean a repository there.
  if (isAbove && (await isClosedDirectory(found.top, { ...check, purpose: "repository" })))
    return { mounts: [], top: null, notices: [] };
  const mounts: PlannedMount[] = [];
  for (const path of found.paths) mounts.push(await plannedMount(path, request));
  const notices = [...borrowed(found, request), ...(isAbove ? [partial(found.top, workspace)] : [])];
  return { mounts, top: isAbove ? found.top : null, notices };
}

async function plannedMount(
  path: string,
  { check, closesSubmounts }: RepositoryRequest,
): Promise<PlannedMount> {
  const stat = lstatSync(path, { bigint: true });
  const mount = { kind: "repository", path, access: "ro" } as const;
  if (stat.isFile()) return { ...mount, identity: { dev: String(stat.dev), ino: String(stat.ino) } };
  refuseSecrets(path);
  const { identity } = await checkDirectory(path, { ...check, purpose: "git directory" });
  const [submount] = closesSubmounts ? [] : await submountsBelow(path, check.host);
  if (submount !== undefined)
    throw unusable(
      `${JSON.stringify(submount.path)} is a mount of its own below ${JSON.stringify(path)}, which this engine would leave writable`,
      "unmount it",
    );
  return { ...mount, identity };
}

function notice({ message, hint, code, cause }: BrigError): BrigError {
  return new BrigError(`git does not work in the sandbox: ${message}`, { code, hint, cause });
}

/** Git reads the index of the whole repository, and finds only the files below the workspace. */
function partial(top: string, workspace: string): BrigError {
  return new BrigError(
    `git in the sandbox sees only ${JSON.stringify(workspace)} of the repository in ${JSON.stringify(top)}: it takes the other files for deleted`,
    { code: "workspace.invalid", hint: `for all of it: -C ${top}` },
  );
}

function borrowed({ gitDirectories, paths }: OutsideRepository, { visible }: RepositoryRequest): BrigError[] {
  const isVisible = (path: string) => [...visible, ...paths].some((root) => isAtOrBelow(path, root));
  return gitDirectories.flatMap((directory) => {
    const missing = borrowedObjects(directory).find((objects) => !isVisible(objects));
    if (missing === undefined) return [];
    const file = join(directory, "objects", "info", "alternates");
    return new BrigError(
      `git in the sandbox does not find all objects: ${JSON.stringify(directory)} borrows some from ${JSON.stringify(missing)}`,
      { code: "workspace.invalid", hint: `copy them: git repack -a -d && rm ${file}` },
    );
  });
}

/** `https://user:password@host`, and a name so long that it is a token. */
const URL_WITH_SECRET = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@\s:]*:[^/@\s]+|[^/@\s:]{20,})@/i;
const SECRET_KEY = /\.(?:[^.]*(?:pass|password|passwd|token|secret|apikey)|extraheader|cookie)$/;
/** A helper that is a shell script may have the password in it, and one with a file has it in that file. */
const SECRET_HELPER = /password=|--file/;
const MAX_DIRECTORIES = 10_000;
/** Directories in a git directory that are not those of submodules. */
const OTHER_PARTS: ReadonlySet<string> = new Set(["objects", "refs", "logs", "hooks", "info", "lfs"]);

/**
 * Error: `workspace.invalid`, with the place, if the configuration in a git directory has a secret in it: whoever sees the
 * directory could read it. Reads the configuration of its submodules and work trees too.
 */
function refuseSecrets(directory: string): void {
  const open = [directory];
  for (let count = 0, next = open.pop(); next !== undefined; count++, next = open.pop()) {
    if (count > MAX_DIRECTORIES)
      throw unusable(
        `${JSON.stringify(directory)} has too many submodules to look through`,
        "use a clone of its own",
      );
    for (const name of ["config", "config.worktree"]) refuseIn(join(next, name), directory);
    open.push(...submodulesBelow(next, directory));
  }
}

function submodulesBelow(path: string, top: string): string[] {
  const names = namesIn(path).filter((name) => !OTHER_PARTS.has(name));
  const inTop = path === top ? names.filter((name) => name === "modules" || name === "worktrees") : names;
  return inTop.map((name) => join(path, name));
}

function namesIn(path: string): string[] {
  try {
    const entries = listNames(toBytePath(path));
    return entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => Buffer.from(name, "latin1").toString("utf8"));
  } catch {
    return [];
  }
}

function refuseIn(file: string, top: string): void {
  const open = [file];
  const known = new Set(open);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const settings = settingsIn(next);
    const secret = settings.find(isSecret);
    if (secret !== undefined)
      throw unusable(
        `commands could read the secret of ${JSON.stringify(withoutUrl(secret.name))} in ${JSON.stringify(next)}`,
        "keep it with a credential helper: git help credentials",
      );
    for (const path of includedIn(settings, join(next, ".."))) {
      if (known.has(path) || !isAtOrBelow(path, top)) continue;
      known.add(path);
      open.push(path);
    }
  }
}

function includedIn(settings: readonly GitSetting[], directory: string): string[] {
  return settings.flatMap(({ name, value }) =>
    /^include(?:if\..*)?\.path$/.test(name) && value ? [resolve(directory, value)] : [],
  );
}

function isSecret({ name, value }: GitSetting): boolean {
  if (value === null || value === "") return false;
  if ([value, name.slice(name.indexOf(".") + 1)].some((text) => URL_WITH_SECRET.test(text))) return true;
  if (/^credential\.(?:.*\.)?helper$/.test(name)) return SECRET_HELPER.test(value);
  return SECRET_KEY.test(name);
}

/** Section and key: the subsection between them may be the URL with the secret. */
function withoutUrl(name: string): string {
  return /:\/\//.test(name)
    ? `${name.slice(0, name.indexOf("."))}.….${name.slice(name.lastIndexOf(".") + 1)}`
    : name;
}
