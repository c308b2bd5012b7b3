import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { errnoOf } from "./errno.js";
import { nullable, object, positiveInteger, type Shape, string } from "./json/json-shape.js";

/** One process, during one boot of one machine. It owns things that may outlive it. */
export interface Owner {
  pid: number;
  /** Start time in clock ticks since boot (field 22 of /proc/PID/stat); null on a machine without /proc. */
  startedAt: string | null;
  /** The kernel's boot id; null on a machine without /proc. */
  bootId: string | null;
  /** The machine and its process namespace, as in `HostProcesses.host`. */
  host: string;
}

export const ownerShape: Shape<Owner> = object({
  pid: positiveInteger,
  startedAt: nullable(string),
  bootId: nullable(string),
  host: string,
});

/** Facts about processes that this machine can provide. */
export interface HostProcesses {
  host: string;
  /** Null on a machine without /proc. */
  bootId: string | null;
  /** Whether a process with this pid exists and has not ended. */
  isAlive(pid: number): boolean;
  /** Null if there is no such process, or no /proc. */
  startOf(pid: number): Promise<string | null>;
}

/**
 * Several machines may share an engine and a host name, and containers their machine's boot id, so `host`
 * also has a hash of the machine id and the process namespace.
 */
export async function readHostProcesses(hostname: string, root = "/"): Promise<HostProcesses> {
  // Synchronous, which takes a tenth of the time: the kernel answers these reads from memory.
  const read = (file: string) => orEmpty(() => readFileSync(`${root}${file}`, "latin1")).trim();
  const namespace = orEmpty(() => readlinkSync(`${root}proc/self/ns/pid`));
  const machine = `${read("etc/machine-id")}\n${namespace}`;
  return {
    host: `${hostname}-${createHash("sha256").update(machine).digest("hex").slice(0, 12)}`,
    bootId: read("proc/sys/kernel/random/boot_id") || null,
    isAlive: (pid) => hasProcess(pid) && !isZombie(`${root}proc/${pid}/stat`),
    startOf: async (pid) => startTime(read(`proc/${pid}/stat`)),
  };
}

function orEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

export async function ownerOf(pid: number, processes: HostProcesses): Promise<Owner> {
  return { pid, startedAt: await processes.startOf(pid), bootId: processes.bootId, host: processes.host };
}

/**
 * "gone" only if that is certain: on the same machine, from another boot or without a process with this pid
 * and start time. Without start times a living pid counts as the owner.
 */
export async function ownerState(
  owner: Owner,
  processes: HostProcesses,
): Promise<"alive" | "gone" | "elsewhere"> {
  if (owner.host !== processes.host) return "elsewhere";
  if (owner.bootId !== processes.bootId)
    return owner.bootId === null || processes.bootId === null ? "elsewhere" : "gone";
  if (!processes.isAlive(owner.pid)) return "gone";
  const startedAt = await processes.startOf(owner.pid);
  if (startedAt === null || owner.startedAt === null) return "alive";
  return startedAt === owner.startedAt ? "alive" : "gone";
}

/** Field 22 of a stat line. The program's name in field 2 may contain spaces and parentheses. */
export function startTime(stat: string): string | null {
  const afterName = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const startField = 22 - 3;
  return afterName[startField]?.match(/^[0-9]+$/)?.[0] ?? null;
}

/** Whether there is a process with this id, or one that has ended and whose parent has not noticed. */
export function hasProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === "EPERM";
  }
}

/** A zombie has ended but keeps its pid until its parent reads its status, which may never happen. */
function isZombie(statFile: string): boolean {
  try {
    const stat = readFileSync(statFile, "latin1");
    return stat.startsWith("Z", stat.lastIndexOf(")") + 2);
  } catch {
    return false;
  }
}
