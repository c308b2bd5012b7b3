import { mkdir, readdir, rename, unlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { readTextFile } from "../../lib/bounded-file.js";
import { errnoOf } from "../../lib/errno.js";
import {
  nullable,
  positiveInteger,
  readOrNull,
  type Shaped,
  strictObject,
  string,
  stringLike,
} from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { ownerOf, ownerState, readHostProcesses } from "../../lib/owner.js";

const RECORD_MAX_BYTES = 64 * 1024;

/** A published port, as long as it is open. It is for people to look at, so a damaged record is left out. */
const recordShape = strictObject({
  sandbox: stringLike(/^[0-9a-f-]{36}$/),
  sandboxPort: positiveInteger,
  port: positiveInteger,
  url: string,
  command: string,
  workingDirectory: string,
  owner: strictObject({
    pid: positiveInteger,
    startedAt: nullable(string),
    bootId: nullable(string),
    host: string,
  }),
});
type PortRecord = Shaped<typeof recordShape>;

/** A port that a brig on this machine has published. */
export type OpenPort = Omit<PortRecord, "owner"> & { pid: number };

const directoryIn = (brigHome: string) => join(brigHome, "ports");

/** Records the port until the returned function is called. A record that cannot be written is done without. */
export async function recordPort(
  brigHome: string,
  port: Omit<PortRecord, "owner">,
): Promise<() => Promise<void>> {
  const directory = directoryIn(brigHome);
  const owner = await ownerOf(process.pid, await readHostProcesses(hostname()));
  const name = `${owner.pid}.${port.port}.json`;
  const temporary = join(directory, `.${name}.tmp`);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(temporary, `${JSON.stringify({ ...port, owner })}\n`, { mode: 0o600 });
    await rename(temporary, join(directory, name));
  } catch {
    return async () => undefined;
  }
  return async () => await removeRecord(join(directory, name));
}

/** The ports that are open now, in the order of their numbers. Removes the records of processes that were killed. */
export async function openPorts(brigHome: string): Promise<OpenPort[]> {
  const directory = directoryIn(brigHome);
  const processes = await readHostProcesses(hostname());
  const open: OpenPort[] = [];
  for (const name of await namesIn(directory)) {
    const path = join(directory, name);
    const record = await readRecord(path);
    if (record === null) continue;
    const { owner, ...port } = record;
    const state = await ownerState(owner, processes);
    if (state === "gone") await removeRecord(path);
    if (state === "alive") open.push({ ...port, pid: owner.pid });
  }
  return open.sort((a, b) => a.port - b.port);
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => /^[0-9]{1,10}\.[0-9]{1,5}\.json$/.test(name));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

async function readRecord(path: string): Promise<PortRecord | null> {
  const file = await readTextFile(path, RECORD_MAX_BYTES);
  return file.kind === "text" ? readOrNull(recordShape, parseJson(file.text)) : null;
}

async function removeRecord(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
