import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Engine } from "../docker/engine-types.js";
import { readTextFile } from "../lib/bounded-file.js";
import { errnoOf } from "../lib/errno.js";
import { type HostProcesses, ownerState } from "../lib/owner.js";
import { parseJson } from "../lib/parse-json.js";
import { isAbandonedPlaceholder, removeAbandonedPlaceholders } from "./plan/placeholders.js";

/**
 * A sandbox as recorded in BRIG_HOME until it is closed. Container labels would not do, since an image can
 * set them, nor files in the workspace, since an agent can write them.
 */
const recordSchema = z.strictObject({
  sessionId: z.string().regex(/^[0-9a-f-]{36}$/),
  owner: z.strictObject({
    pid: z.number().int().positive(),
    startedAt: z.string().nullable(),
    bootId: z.string().nullable(),
    host: z.string(),
  }),
  endpoint: z.string(),
  /** Null until the container is created. */
  containerId: z.string().nullable(),
  /** The inode is null until the directory is created. */
  placeholders: z
    .array(z.strictObject({ path: z.string().startsWith("/"), ino: z.string().nullable() }))
    .readonly(),
});
export type SandboxRecord = z.infer<typeof recordSchema>;

const RECORD_MAX_BYTES = 4 * 1024 * 1024;

function directoryIn(brigHome: string): string {
  return join(brigHome, "sandboxes");
}

/** The process id comes first in the name, so that records of living processes need not be opened. */
function fileOf({ owner, sessionId }: Pick<SandboxRecord, "owner" | "sessionId">): string {
  return `${owner.pid}.${sessionId}.json`;
}

/** Writes atomically. Throws the file system's own errors. */
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

/** Returns all readable records, or those whose process id `isWanted`. */
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

/**
 * Removes the placeholders and records of sessions whose process and container are certainly gone. Returns
 * the removed directories, without those that other sessions use. Errors: the engine's.
 */
export async function reclaimPlaceholders(
  engine: Pick<Engine, "inspectContainer" | "endpoint">,
  { brigHome, processes }: { brigHome: string; processes: HostProcesses },
): Promise<string[]> {
  const removed: string[] = [];
  for (const record of await readRecords(brigHome, (pid) => pid !== process.pid)) {
    if (record.endpoint !== engine.endpoint) continue;
    if ((await ownerState(record.owner, processes)) !== "gone") continue;
    const name = record.containerId ?? `brig-${record.sessionId}`;
    if ((await engine.inspectContainer(name)) !== null) continue;
    const others = (await readRecords(brigHome)).filter(({ sessionId }) => sessionId !== record.sessionId);
    const inUse = new Set(others.flatMap(({ placeholders }) => placeholders.map(({ path }) => path)));
    const free = record.placeholders.filter(({ path }) => !inUse.has(path));
    removed.push(...(await removeAbandonedPlaceholders(free)));
    const remaining = await Promise.all(free.map(({ path }) => isAbandonedPlaceholder(path)));
    if (!remaining.includes(true)) await removeRecord(brigHome, record);
  }
  return removed;
}
