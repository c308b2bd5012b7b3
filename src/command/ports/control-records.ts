import { lstat } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { invalidUsage } from "../../errors.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { nullable, type Shaped, strictObject, string, stringLike } from "../../lib/json/json-shape.js";
import { OwnedRecords } from "../../lib/owned-records.js";

/**
 * The beginning of an abstract socket's name. Names always have the greatest length that is possible: some versions
 * of Node fill shorter ones up with zeros and others do not, so they would not find each other's sockets.
 */
export const ABSTRACT_START = "\0brig-";

const recordShape = strictObject({
  sandbox: stringLike(/^[0-9a-f-]{36}$/),
  session: nullable(string),
  command: string,
  workingDirectory: string,
  /** The path of the socket; on Linux that of an abstract one, which begins with a zero byte. */
  address: stringLike(/^(?:\0brig-[0-9a-f]{102}|\/[^\0]{1,200})$/),
  token: stringLike(/^[0-9a-f]{64}$/),
});

/** A sandbox whose owner takes requests. */
export type ControlRecord = Shaped<typeof recordShape>;

export function controlDirectory(brigHome: string): string {
  return join(brigHome, "control");
}

/** Opens `$BRIG_HOME/control`, which contains the tokens. Error: `usage.invalid` if others than the user can use it. */
export async function openControlRecords(
  brigHome: string,
): Promise<{ directory: string; records: OwnedRecords<ControlRecord> }> {
  const directory = controlDirectory(brigHome);
  await makeDirectory(directory, { mode: 0o700 });
  const { uid, mode } = await lstat(directory);
  if ((mode & 0o170_777) === 0o040_700 && uid === userInfo().uid)
    return { directory, records: new OwnedRecords(directory, recordShape) };
  throw invalidUsage(
    `${directory} is not a directory that only you can use`,
    "remove it, or make it yours and run chmod 700 on it; brig keeps there what lets you open ports of running sandboxes",
  );
}
