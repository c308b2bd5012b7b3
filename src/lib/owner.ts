import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile, readlink } from "node:fs/promises";
import { errnoOf } from "./errno.js";

/** One process of one boot of one machine: what a thing that outlives it belongs to. */
export interface Owner {
  pid: number;
  /** Start time in clock ticks since boot (field 22 of /proc/PID/stat); null on a machine without /proc. */
  startedAt: string | null;
  /** The kernel's boot id; null on a machine without /proc. */
  bootId: string | null;
  /** The machine and its process namespace, as `HostProcesses.host` has it. */
  host: string;
}

/** The machine brig runs on, as far as ownership is concerned. */
export interface HostProcesses {
  host: string;
  /** Null on a machine without /proc. */
  bootId: string | null;
  /** Whether a process has this pid and has not ended. */
  isAlive(pid: number): boolean;
  /** Null when there is no such process, or no /proc. */
  startOf(pid: number): Promise<string | null>;
}

/**
 * Reads the machine's facts once. Several machines may share an engine and a name, and containers of one machine its
 * boot id: so `host` is the name with a hash of the machine id and the process namespace.
 */
export async function readHostProcesses(hostname: string, root = "/"): Promise<HostProcesses> {
  const read = async (file: string) => (await readFile(`${root}${file}`, "latin1").catch(() => "")).trim();
  const namespace = await readlink(`${root}proc/self/ns/pid`).catch(() => "");
  const machine = `${await read("etc/machine-id")}\n${namespace}`;
  return {
    host: `${hostname}-${createHash("sha256").update(machine).digest("hex").slice(0, 12)}`,
    bootId: (await read("proc/sys/kernel/random/boot_id")) || null,
    isAlive: (pid) => hasProcess(pid) && !isZombie(`${root}proc/${pid}/stat`),
    startOf: async (pid) => startTime(await read(`proc/${pid}/stat`)),
  };
}

export async function ownerOf(pid: number, processes: HostProcesses): Promise<Owner> {
  return { pid, startedAt: await processes.startOf(pid), bootId: processes.bootId, host: processes.host };
}

/**
 * "gone" only when that is certain: same machine, and either another boot, or no such process, or one that started at
 * another time. Without start times a living pid counts as the owner.
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

/** Field 22 of a stat line. The program's name, field 2, may itself contain spaces and parentheses. */
export function startTime(stat: string): string | null {
  const afterName = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const startField = 22 - 3;
  return afterName[startField]?.match(/^[0-9]+$/)?.[0] ?? null;
}

function hasProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === "EPERM";
  }
}

/** It has ended, and keeps its number until its parent asks for its status: in a container the first process may never do so. */
function isZombie(statFile: string): boolean {
  try {
    const stat = readFileSync(statFile, "latin1");
    return stat.startsWith("Z", stat.lastIndexOf(")") + 2);
  } catch {
    return false;
  }
}
