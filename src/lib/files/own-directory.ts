import { lstatSync, type Stats } from "node:fs";

/** -1 where users have no numbers. */
export function ownUid(): number {
  return process.getuid?.() ?? -1;
}

/** Whether it is a directory of this user's, and no link, into which nobody else may look. */
export function isOwnDirectory(path: string, uid = ownUid()): boolean {
  const facts = factsOf(path);
  return facts?.isDirectory() === true && facts.uid === uid && (facts.mode & 0o077) === 0;
}

/** Null if there is nothing, or nothing that may be looked at. A link is looked at itself, unless `look` follows it. */
export function factsOf(path: string, look: (path: string) => Stats = lstatSync): Stats | null {
  try {
    return look(path);
  } catch {
    return null;
  }
}
