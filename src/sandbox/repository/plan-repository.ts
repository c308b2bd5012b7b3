import { lstatSync } from "node:fs";
import { join } from "node:path";
import { BrigError, isBrigError } from "../../errors.js";
import { isAtOrBelow } from "../plan/paths.js";
import type { PlannedMount } from "../plan/plan.js";
import { checkDirectory, type DirectoryCheck, isClosedDirectory, submountsBelow } from "../plan/workspace.js";
import {
  borrowedObjects,
  findRepository,
  type OutsideRepository,
  type Surroundings,
} from "./find-repository.js";
import { refuseSecrets } from "./secret-settings.js";
import { unusable } from "./unusable.js";

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
