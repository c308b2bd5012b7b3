import { BrigError, type FullDisk } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import { asRefusal } from "../engine-failure.js";
import type { EngineInfo } from "../engine-types.js";
import { type FreeSpace, freeSpace, isThisMachine } from "./this-machine.js";

/** Below this, an engine can no longer write what it must. */
export const FULL_DISK_BYTES = 16 * 1024 ** 2;
/** Below this, even a small file has no room. */
const NO_BYTES = 1024 ** 2;
/** The time by which the report of a failed call may be delayed at most, to measure the free space. */
const MEASURING_MS = 2000;

const HINT = "make room for the engine: brig gc, brig image prune, docker system prune";

type Whereabouts = Pick<EngineInfo, "kernel" | "memoryBytes" | "dockerRootDir">;

interface AskedEngine {
  endpoint: string;
  info(signal: AbortSignal): Promise<Whereabouts>;
}

/**
 * If the engine failed because its disk is full, or its disk is full and its error says nothing else, an error that says so:
 * with the same code, and with what is free on the disk if the engine is on this machine. Otherwise the error as it is.
 * Never rejects.
 */
export async function blameFullDisk(
  error: BrigError,
  engine: AskedEngine,
  signal?: AbortSignal,
): Promise<BrigError> {
  if (error.disk !== undefined || isAnotherLimit(error)) return error;
  const saysSo = error.errno === "ENOSPC" || error.errno === "EDQUOT";
  const measured = await measure(engine, signal);
  if (!saysSo && (measured === null || hasRoom(measured.space))) return error;
  const { message, code, errno, reason, cause } = error;
  return new BrigError(`${message}\n${sentence(measured)}`, {
    ...{ code, errno, reason, cause, hint: HINT },
    disk: asFullDisk(measured),
  });
}

/** The kernel answers with the same error if there are too many control groups or watched files. */
function isAnotherLimit({ cause }: BrigError): boolean {
  return /\/sys\/fs\/cgroup|inotify/.test(asRefusal(cause)?.words ?? "");
}

interface Measured {
  path: string;
  space: FreeSpace;
}

/** Null if the engine is on another machine, does not say in time where its files are, or `signal` is aborted. */
async function measure(
  { endpoint, info }: AskedEngine,
  signal: AbortSignal | undefined,
): Promise<Measured | null> {
  using limit = new TimeLimit(MEASURING_MS, signal);
  const measuring = async (): Promise<Measured | null> => {
    const asked = await info(limit.signal);
    if (asked.dockerRootDir === "" || !(await isThisMachine(endpoint, asked))) return null;
    const space = await freeSpace(asked.dockerRootDir);
    return space === null ? null : { path: asked.dockerRootDir, space };
  };
  return await beforeAbort(measuring(), limit.signal).catch(() => null);
}

function hasRoom({ bytes, files }: FreeSpace): boolean {
  return bytes >= FULL_DISK_BYTES && files !== 0;
}

function asFullDisk(measured: Measured | null): FullDisk {
  const { path, space } = measured ?? { path: null, space: null };
  return {
    owner: "engine",
    path,
    freeBytes: space === null ? null : space.bytes,
    freeFiles: space === null ? null : space.files,
  };
}

function sentence(measured: Measured | null): string {
  if (measured === null) return "the disk of the container engine is full";
  const { path, space } = measured;
  const free =
    space.files === 0
      ? `there can be no more files in ${path}`
      : `${formatBytes(space.bytes)} are free in ${path}`;
  // The engine may have removed again what it had written until it failed.
  if (hasRoom(space)) return `the disk of the container engine had no room for that: ${free} now`;
  const isFull = space.bytes < NO_BYTES || space.files === 0;
  return `the disk of the container engine is ${isFull ? "" : "almost "}full: ${free}`;
}
