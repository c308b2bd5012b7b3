import { posix } from "node:path";

/** Does not resolve `..`, which depends on where symbolic links lead: the kernel does that. */
export function absolutePath(cwd: string, path: string): string {
  const joined = path.startsWith("/") ? path : `${cwd}/${path}`;
  return joined.split("/").includes("..") ? joined : posix.resolve(joined);
}
