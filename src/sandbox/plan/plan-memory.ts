import type { EngineInfo } from "../docker/engine-types.js";
import { isRootless } from "../docker/rootless.js";
import type { Policy, SandboxLimits } from "../policy/policy.js";
import type { PlannedLimits } from "./plan.js";

const MIB = 1024 * 1024;
/** The largest page size on amd64 and arm64. Sizes are multiples of it, so that no kernel rounds them. */
const PAGE_BYTES = 65_536;
/** The unit of `kernel.shmall`, except on arm64 kernels with larger pages. */
const USUAL_PAGE_BYTES = 4096;
/** The approximate kernel memory that an empty file in a tmpfs takes. */
const INODE_BYTES = 1024;
/** The share of the memory limit that empty files may take. */
const INODE_SHARE = 1 / 8;
/** The least number of inodes that a policy may ask for. */
const LEAST_INODES = 16;
/** /dev/shm may contain one file per this many bytes of its size. */
const SHM_BYTES_PER_INODE = 16 * 1024;
/** Linux has 4096 for the whole machine, 1024 of which containers do not get. */
const TERMINALS = 64;

interface LimitsRequest {
  engine: EngineInfo;
  /** Limits in place of the policy's. */
  limits?: SandboxLimits | undefined;
}

/**
 * Reduces the limits to what the machine has. Memory-backed file systems shrink with the memory limit: even
 * full, they must leave half of it to processes, or no command could run. With more memory than the policy
 * has, they stay as it says.
 */
export function resolveLimits(
  { limits, tmpfs }: Policy,
  { engine, limits: chosen = {} }: LimitsRequest,
): MemoryPlan {
  const { memoryMb = limits.memoryMb, cpus = limits.cpus, pids = limits.pids } = chosen;
  const memoryBytes = inPages(atMost(memoryMb * MIB, engine.memoryBytes));
  const scale = Math.min(memoryBytes / MIB / limits.memoryMb, 1);
  // The value 0 means "unlimited" for the size of a tmpfs, and for its number of files.
  const inMemory = (sizeMb: number) => Math.max(PAGE_BYTES, inPages(sizeMb * MIB * scale));
  const shmBytes = inMemory(limits.shmMb);
  const shmInodes = Math.max(64, Math.floor(shmBytes / SHM_BYTES_PER_INODE));
  const inodes = tmpfs.reduce((sum, { maxInodes }) => sum + maxInodes, shmInodes);
  const share = Math.min(1, (memoryBytes * INODE_SHARE) / INODE_BYTES / inodes);
  const inodesOf = (wanted: number) => Math.max(LEAST_INODES, Math.floor(wanted * share));
  return {
    limits: {
      memoryBytes,
      nanoCpus: Math.round(atMost(cpus, engine.cpus) * 1e9),
      pids,
      openFiles: limits.openFiles,
      shmBytes,
      shmInodes: inodesOf(shmInodes),
      ipc: isRootless(engine) ? {} : ipcLimits(shmBytes),
      coreBytes: limits.coreMb * MIB,
      terminals: TERMINALS,
    },
    inMemory,
    inodes: inodesOf,
  };
}

export interface MemoryPlan {
  limits: PlannedLimits;
  /** Converts a tmpfs size from the policy's MiB to bytes, scaled to the memory limit. */
  inMemory(sizeMb: number): number;
  /** Scales a tmpfs's file limit to the memory limit. */
  inodes(maxInodes: number): number;
}

/**
 * IPC objects outlive commands, so they are kept small: shared memory is freed with the last process that
 * uses it, queues and semaphores take some 30 MiB at most.
 */
function ipcLimits(shmBytes: number): Record<string, string> {
  return {
    "kernel.shmmax": String(shmBytes),
    "kernel.shmall": String(shmBytes / USUAL_PAGE_BYTES),
    "kernel.shmmni": "512",
    "kernel.shm_rmid_forced": "1",
    "kernel.sem": "250 32000 100 128",
    "kernel.msgmax": "8192",
    "kernel.msgmnb": "16384",
    "kernel.msgmni": "24",
    "fs.mqueue.queues_max": "16",
    "fs.mqueue.msg_max": "10",
    "fs.mqueue.msgsize_max": "8192",
  };
}

function inPages(bytes: number): number {
  return Math.floor(bytes / PAGE_BYTES) * PAGE_BYTES;
}

/** An engine that does not know the machine's size reports 0, which as a limit would mean "unlimited". */
function atMost(wanted: number, available: number): number {
  return available > 0 ? Math.min(wanted, available) : wanted;
}
