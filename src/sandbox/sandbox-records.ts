import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Engine } from "../docker/engine-types.js";
import { readTextFile } from "../lib/bounded-file.js";
import { errnoOf } from "../lib/errno.js";
import { type HostProcesses, type Owner, ownerState } from "../lib/owner.js";
import { parseJson } from "../lib/parse-json.js";
import { isLeftPlaceholder, removeLeftPlaceholders } from "./plan/placeholders.js";

/**
 * What this machine's user knows of a sandbox that brig made: in a file of its own, since labels of a container may be an image's, and
 * what lies in a workspace an agent's.
 */
const recordSchema = z.strictObject({
  sessionId: z.string().regex(/^[0-9a-f-]{36}$/),
  owner: z.strictObject({
    pid: z.number().int().positive(),
    startedAt: z.string().nullable(),
    bootId: z.string().nullable(),
    host: z.string(),
  }),
  /** Where the engine is. */
  endpoint: z.string(),
  /** Null until there is one. */
  containerId: z.string().nullable(),
  /** With their inodes once they are made. */
  placeholders: z
    .array(z.strictObject({ path: z.string().startsWith("/"), ino: z.string().nullable() }))
    .readonly(),
});
export type SandboxRecord = z.infer<typeof recordSchema>;

const RECORD_MAX_BYTES = 4 * 1024 * 1024;

function directoryIn(brigHome: string): string {
  return join(brigHome, "sandboxes");
}

/** The process comes first in the name, so that records of living ones need not be opened. */
function fileOf({ owner, sessionId }: Pick<SandboxRecord, "owner" | "sessionId">): string {
  return `${owner.pid}.${sessionId}.json`;
}

/** Written whole or not at all. Throws what the file system says. */
export async function writeRecord(brigHome: string, record: SandboxRecord): Promise<void> {
  const directory = directoryIn(brigHome);
  const temporary = join(directory, `.${record.sessionId}.tmp`);
  const write = () => writeFile(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  await write().catch(async (error: unknown) => {
    if (errnoOf(error) !== "ENOENT") throw error;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await write();
  });
  await rename(temporary, join(directory, fileOf(record)));
}

export async function removeRecord(
  brigHome: string,
  record: Pick<SandboxRecord, "owner" | "sessionId">,
): Promise<void> {
  await rm(join(directoryIn(brigHome), fileOf(record)), { force: true });
}

/** All that can be read, or those that `isWanted` by the process they name. */
export async function readRecords(
  brigHome: string,
  isWanted: (pid: number) => boolean = () => true,
): Promise<SandboxRecord[]> {
  const directory = directoryIn(brigHome);
  const names = await readdir(directory).catch(() => []);
  const wanted = names.filter((name) => {
    const pid = /^([0-9]{1,10})\.[0-9a-f-]{36}\.json$/.exec(name)?.[1];
    return pid !== undefined && isWanted(Number(pid));
  });
  const records = await Promise.all(wanted.map((name) => readRecord(join(directory, name))));
  return records.filter((record) => record !== null);
}

async function readRecord(file: string): Promise<SandboxRecord | null> {
  const read = await readTextFile(file, RECORD_MAX_BYTES);
  return read.kind === "text" ? (recordSchema.safeParse(parseJson(read.text)).data ?? null) : null;
}

export interface Reclaiming {
  brigHome: string;
  processes: HostProcesses;
}

/**
 * Takes back what sessions left whose process and container are both gone for certain: empty directories that brig made, by their
 * inode, and the record. What another session has in use stays. Gives the directories that were removed. Errors: the engine's.
 */
export async function reclaimPlaceholders(
  engine: Pick<Engine, "inspectContainer" | "endpoint">,
  { brigHome, processes }: Reclaiming,
): Promise<string[]> {
  const mayBeDead = (pid: number) => pid !== process.pid;
  const removed: string[] = [];
  for (const record of await readRecords(brigHome, mayBeDead)) {
    if (record.endpoint !== engine.endpoint || !(await isGone(record.owner, processes))) continue;
    const name = record.containerId ?? `brig-${record.sessionId}`;
    if ((await engine.inspectContainer(name)) !== null) continue;
    const others = (await readRecords(brigHome)).filter(({ sessionId }) => sessionId !== record.sessionId);
    const inUse = new Set(others.flatMap(({ placeholders }) => placeholders.map(({ path }) => path)));
    const free = record.placeholders.filter(({ path }) => !inUse.has(path));
    removed.push(...(await removeLeftPlaceholders(free)));
    const stays = await Promise.all(free.map(({ path }) => isLeftPlaceholder(path)));
    if (!stays.includes(true)) await removeRecord(brigHome, record);
  }
  return removed;
}

async function isGone(owner: Owner, processes: HostProcesses): Promise<boolean> {
  return (await ownerState(owner, processes)) === "gone";
}
