/** A path as the key of a map: its bytes as latin1, which is in the order of the bytes, too. */
export function keyOf(path: Buffer): string {
  return path.toString("latin1");
}

/** Whether one of these directories has the path in it, at any depth. All are keys. */
export function isBelowOneOf(path: string, directories: ReadonlySet<string>): boolean {
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
    if (directories.has(path.slice(0, end))) return true;
  return false;
}

/** The rest of a path that is below a directory; null for any other path. */
export function relativeTo(directory: Buffer, path: Buffer): Buffer | null {
  const start = Buffer.concat([directory, Buffer.from("/")]);
  return path.subarray(0, start.length).equals(start) ? path.subarray(start.length) : null;
}
