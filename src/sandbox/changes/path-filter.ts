import { posix } from "node:path";
import { BrigError } from "../../errors.js";
import { isAtOrBelow } from "../plan/paths.js";

const SLASH = 0x2f;

const REPOSITORY = Buffer.from(".git");

/** A choice of the changes of a workspace that count. */
export interface PathChoice {
  /** Only these paths, and what is below them: relative to the workspace, or absolute. Default: all. */
  paths?: readonly string[] | undefined;
  /** Whether the repository of the workspace is left out, since its commits arrive as a branch. */
  withoutRepository: boolean;
}

/** Returns a function that tells whether a path counts. Error: `usage.invalid` for a path outside the workspace. */
export function pathFilter(
  workspace: string,
  { paths, withoutRepository }: PathChoice,
): (path: Buffer) => boolean {
  const wanted = paths?.map((path) => relativePath(workspace, path));
  return (path) =>
    !(withoutRepository && isOfRepository(path)) &&
    (wanted === undefined || wanted.some((one) => isSameOrBelow(path, one)));
}

/** Whether a path belongs to the repository at the top of the workspace. */
export function isOfRepository(path: Buffer): boolean {
  return isSameOrBelow(path, REPOSITORY);
}

function relativePath(workspace: string, path: string): Buffer {
  const absolute = posix.resolve(workspace, path);
  if (isAtOrBelow(absolute, workspace)) return Buffer.from(posix.relative(workspace, absolute));
  throw new BrigError(`${JSON.stringify(path)} is not in the workspace ${workspace}`, {
    code: "usage.invalid",
    hint: "give paths below the workspace, relative to it or absolute",
  });
}

/** The empty path is the workspace itself. */
function isSameOrBelow(path: Buffer, outer: Buffer): boolean {
  if (outer.length === 0) return true;
  if (!path.subarray(0, outer.length).equals(outer)) return false;
  return path.length === outer.length || path[outer.length] === SLASH;
}
