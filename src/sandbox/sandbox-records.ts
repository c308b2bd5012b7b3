import { readdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BrigError, isBrigError } from "../errors.js";
import { errnoOf, systemReason } from "../lib/errno.js";
import { fullDiskOfBrig } from "../lib/files/full-disk.js";
import { makeDirectorySync } from "../lib/files/make-directory.js";
import { readTextNow } from "../lib/files/read-text-now.js";
import {
  array,
  boolean,
  nullable,
  nullish,
  object,
  readOrNull,
  type Shape,
  type Shaped,
  strictObject,
  string,
  stringLike,
} from "../lib/json/json-shape.js";
import { parseJson } from "../lib/json/parse-json.js";
import { type HostProcesses, hasProcess, type Owner, ownerShape, ownerState } from "../lib/owner.js";
import type { Engine } from "./docker/engine-types.js";
import { LABELS, readSessionLabels } from "./labels.js";
import { reclaimTreeVolumes } from "./overlay/tree-volumes.js";
import { isAbandonedPlaceholder, removeAbandonedPlaceholders } from "./plan/placeholders.js";
import { inTime } from "./removal.js";

const placeholdersShape: Shape<readonly { path: string; ino: string | null }[]> = array(
  strictObject({ path: stringLike(/^\//), ino: nullable(string) }),
);

/** The description of a sandbox that `brig ps` shows. */
const aboutShape = object({
  /** A mode, or the path of a policy file. */
  mode: string,
  /** The network in the form that `--network` takes. */
  network: string,
  image: string,
  workspace: nullable(string),
  /** The time in ISO 8601. */
  createdAt: string,
});
export type SandboxAbout = Shaped<typeof aboutShape>;

/**
 * A sandbox as recorded in BRIG_HOME until it is closed. Container labels would not do, since an image can
 * set them, nor files in the workspace, since an agent can write them.
 */
const recordShape = strictObject({
  sessionId: stringLike(/^[0-9a-f-]{36}$/),
  owner: ownerShape,
  endpoint: string,
  /** Null until the container is created. */
  containerId: nullable(string),
  /** The inode is null until the directory is created. */
  placeholders: placeholdersShape,
  /** Missing for the tree of a copy-on-write workspace, which is no sandbox, and in records of earlier versions. */
  about: nullish(aboutShape),
  /** True for a sandbox with which another process can go on when its owner is gone. */
  lasts: nullish(boolean),
});
type RecordFields = Shaped<typeof recordShape>;
export type SandboxRecord = Omit<RecordFields, "about" | "lasts"> &
  Partial<Pick<RecordFields, "about" | "lasts">>;

const RECORD_MAX_BYTES = 4 * 1024 * 1024;

function directoryIn(brigHome: string): string {
  return join(brigHome, "sandboxes");
}

const recordName = /^([0-9]{1,10})\.[0-9a-f-]{36}\.json$/;

/** The process id comes first in the name, so that records of living processes need not be opened. */
function fileOf({ owner, sessionId }: Pick<SandboxRecord, "owner" | "sessionId">): string {
  return `${owner.pid}.${sessionId}.json`;
}

/**
 * Writes atomically. Throws the file system's own errors. This function and those below make short calls
 * synchronously, which takes a tenth of the time.
 */
export function writeRecord(brigHome: string, record: SandboxRecord): void {
  const directory = directoryIn(brigHome);
  const temporary = join(directory, `.${record.sessionId}.tmp`);
  const write = () =>
    withoutRest(temporary, () => writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 }));
  try {
    write();
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    makeDirectorySync(directory, { mode: 0o700 });
    write();
  }
  renameSync(temporary, join(directory, fileOf(record)));
}

/** Removes the file if it cannot be written whole: on a full disk it is made and stays empty. */
function withoutRest(file: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

export function removeRecord(brigHome: string, record: Pick<SandboxRecord, "owner" | "sessionId">): void {
  try {
    unlinkSync(join(directoryIn(brigHome), fileOf(record)));
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

/** Removes the records of a session by earlier owners, once there is one by this owner. */
export function removeEarlierRecords(
  brigHome: string,
  { owner, sessionId }: Pick<SandboxRecord, "owner" | "sessionId">,
): void {
  for (const record of recordedNow(brigHome))
    if (record.sessionId === sessionId && record.owner.pid !== owner.pid) removeRecord(brigHome, record);
}

/**
 * All readable records at this moment, or those whose process id `isKept`. Synchronous, so that a caller can act before anything else
 * happens in this process.
 */
export function recordedNow(
  brigHome: string,
  isKept: (pid: number) => boolean = () => true,
): SandboxRecord[] {
  const directory = directoryIn(brigHome);
  return namesIn(directory).flatMap((name) => {
    const pid = recordName.exec(name)?.[1];
    if (pid === undefined || !isKept(Number(pid))) return [];
    const text = readTextNow(join(directory, name), RECORD_MAX_BYTES);
    return (text === null ? null : readOrNull(recordShape, parseJson(text))) ?? [];
  });
}

/** Whether this owner has certainly ended, which is never known of one on another machine. `here` is this very process. */
export function hasEnded(owner: Owner, here: Owner): boolean {
  if (owner.host !== here.host) return false;
  return owner.bootId !== here.bootId || !hasProcess(owner.pid);
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

type ReclaimingEngine = Pick<
  Engine,
  | "endpoint"
  | "inspectContainer"
  | "listContainers"
  | "removeContainer"
  | "unpauseContainer"
  | "listVolumes"
  | "removeVolume"
>;

/**
 * Removes the containers of a session in which nothing runs, once its process was killed: those that were created and not started,
 * and those that have ended and stay, unless the user asked for that. One that is paused goes on, since its runner cannot see meanwhile that its
 * lease is over. What the engine does not do stays for the next time.
 */
async function removeIdle(
  engine: ReclaimingEngine,
  { sessionId, containerId }: SandboxRecord,
): Promise<void> {
  const left = await inTime(() => engine.listContainers([`${LABELS.session}=${sessionId}`]));
  for (const { id, state, labels } of left) {
    // Anybody can make a container with these labels.
    const hasEnded = id === containerId && (state === "exited" || state === "dead");
    const isKept = readSessionLabels(labels)?.leaseSeconds === 0;
    const isFrozen = id === containerId && state === "paused" && !isKept;
    if (state !== "created" && !isFrozen && (!hasEnded || isKept)) continue;
    await inTime(async (signal) =>
      isFrozen ? await engine.unpauseContainer(id) : await engine.removeContainer(id, { signal }),
    ).catch((error: unknown) => {
      if (!isBrigError(error, "engine.failed")) throw error;
    });
  }
}

/**
 * Removes the placeholders, volumes and records of sessions whose process and container are certainly gone, and containers of theirs in which nothing runs. Returns
 * the removed directories, without those that other sessions use. Errors: the engine's.
 */
export async function reclaimPlaceholders(
  engine: ReclaimingEngine,
  { brigHome, processes }: { brigHome: string; processes: HostProcesses },
): Promise<string[]> {
  const removed: string[] = [];
  for (const record of recordedNow(brigHome, (pid) => pid !== process.pid)) {
    if (record.endpoint !== engine.endpoint) continue;
    if ((await ownerState(record.owner, processes)) !== "gone") continue;
    await removeIdle(engine, record);
    const name = record.containerId ?? `brig-${record.sessionId}`;
    if ((await inTime((signal) => engine.inspectContainer(name, { signal }))) !== null) continue;
    // Nothing is waited for from here to the removal: another session could take the directories over meanwhile.
    const others = recordedNow(brigHome).filter(({ sessionId }) => sessionId !== record.sessionId);
    const inUse = new Set(others.flatMap(({ placeholders }) => placeholders.map(({ path }) => path)));
    const free = record.placeholders.filter(({ path }) => !inUse.has(path));
    removed.push(...(await removeAbandonedPlaceholders(free)));
    const remaining = await Promise.all(free.map(({ path }) => isAbandonedPlaceholder(path)));
    const areVolumesGone = await reclaimTreeVolumes(engine, record.sessionId);
    if (areVolumesGone && !remaining.includes(true)) removeRecord(brigHome, record);
  }
  return removed;
}

/** The error for a warning: the record is needed only if this process is killed. */
export function notRecorded(brigHome: string, cause: unknown): BrigError {
  return new BrigError(
    `the sandbox cannot be recorded in ${JSON.stringify(brigHome)}: ${systemReason(cause)}`,
    {
      code: "config.invalid",
      hint: "brig gc will not find what a killed session leaves; set BRIG_HOME to a directory that can be written",
      disk: fullDiskOfBrig(cause, brigHome),
      cause,
    },
  );
}
