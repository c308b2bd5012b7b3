import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errnoOf } from "../../../lib/errno.js";

/** A process that the kernel killed because memory was short. */
export interface MemoryKill {
  /** Whether a limit was reached; otherwise the whole machine had no memory left. */
  isByLimit: boolean;
  /** The control group whose limit was reached; null without one. */
  limitedGroup: string | null;
  /** The control group of the process. */
  group: string;
}

/** A longer record would be no message of the kernel. */
const maxRecordBytes = 8192;
const maxRecords = 200_000;

/** All kills that the kernel still remembers; null if this user may not read its log. */
export async function readMemoryKills(): Promise<MemoryKill[] | null> {
  let log: FileHandle;
  try {
    log = await open("/dev/kmsg", constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  const kills: MemoryKill[] = [];
  try {
    for (let count = 0; count < maxRecords; count++) {
      const record = await readRecord(log);
      if (record === null) break;
      const kill = parseMemoryKill(record);
      if (kill !== null) kills.push(kill);
    }
  } finally {
    await log.close();
  }
  return kills;
}

/** Null at the end. */
async function readRecord(log: FileHandle): Promise<string | null> {
  try {
    const { bytesRead, buffer } = await log.read(Buffer.alloc(maxRecordBytes), 0, maxRecordBytes, null);
    return bytesRead === 0 ? null : buffer.toString("latin1", 0, bytesRead);
  } catch (error) {
    // The record was overwritten before it was read.
    if (errnoOf(error) === "EPIPE") return "";
    return null;
  }
}

/** The name of the process, which it can choose itself, comes last: what is before it is the kernel's own. */
export function parseMemoryKill(record: string): MemoryKill | null {
  const found =
    /^[^;]*;oom-kill:constraint=(\w+),nodemask=[^,]*(?:,\d[^,]*)*,cpuset=[^,]*,mems_allowed=[\d,-]*,(?:global_oom|oom_memcg=([^,]*)),task_memcg=([^,]*),/.exec(
      record,
    );
  if (found === null) return null;
  const [, constraint = "", limitedGroup = null, group = ""] = found;
  return { isByLimit: constraint === "CONSTRAINT_MEMCG", limitedGroup, group };
}
