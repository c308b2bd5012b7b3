import { posix } from "node:path";

/**
 * The absolute path of what a call names. A path with `..` is left to the kernel: what that means depends on where links
 * lead.
 */
export function absolutePath(cwd: string, path: string): string {
  const joined = path.startsWith("/") ? path : `${cwd}/${path}`;
  return joined.split("/").includes("..") ? joined : posix.resolve(joined);
}
