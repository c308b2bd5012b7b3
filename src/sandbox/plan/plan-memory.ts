import type { EngineInfo } from "../../docker/engine-types.js";
import type { Policy } from "../../policy/policy.js";
import type { PlannedLimits } from "./plan.js";

const MIB = 1024 * 1024;
/** The largest page a kernel of either architecture uses, so that no kernel rounds what was promised. */
const PAGE_BYTES = 65_536;
/** The page that `kernel.shmall` counts in, but for some arm64 kernels. */
const USUAL_PAGE_BYTES = 4096;
/** What an empty file in memory takes of the kernel's own memory, about. */
const INODE_BYTES = 1024;
/** Of the memory limit, for empty files. */
const INODE_SHARE = 1 / 8;
/** One file for so many bytes of /dev/shm. */
const SHM_BYTES_PER_INODE = 16 * 1024;

/**
 * What the policy allows, but not more than the machine has. Memory-backed sizes shrink with the memory limit: full,
 * they must leave half of it to processes, or no command could run any more.
 */
export function resolveLimits({ limits, tmpfs }: Policy, engine: EngineInfo): MemoryPlan {
  const memoryBytes = Math.floor(atMost(limits.memoryMb * MIB, engine.memoryBytes) / PAGE_BYTES) * PAGE_BYTES;
  const inMemory = (sizeMb: number) =>
    Math.floor((sizeMb * memoryBytes) / limits.memoryMb / PAGE_BYTES) * PAGE_BYTES;
  const shmBytes = inMemory(limits.shmMb);
  const shmInodes = Math.max(64, Math.floor(shmBytes / SHM_BYTES_PER_INODE));
  const inodes = tmpfs.reduce((sum, { maxInodes }) => sum + maxInodes, shmInodes);
  const share = Math.min(1, (memoryBytes * INODE_SHARE) / INODE_BYTES / inodes);
  return {
    limits: {
      memoryBytes,
      nanoCpus: Math.round(atMost(limits.cpus, engine.cpus) * 1e9),
      pids: limits.pids,
      openFiles: limits.openFiles,
      shmBytes,
      shmInodes: Math.floor(shmInodes * share),
      ipc: isRootless(engine) ? {} : ipcLimits(shmBytes),
      coreBytes: limits.coreMb * MIB,
    },
    inMemory,
    inodes: (maxInodes) => Math.floor(maxInodes * share),
  };
}

export interface MemoryPlan {
  limits: PlannedLimits;
  /** Bytes of a size in MiB. */
  inMemory(sizeMb: number): number;
  /** As many of a tmpfs's files as there is memory for. */
  inodes(maxInodes: number): number;
}

/**
 * Memory that no process holds outlives commands, so there is little of it: shared memory goes with the last process
 * that uses it, and what queues and semaphores can take in all is some 30 MiB.
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

/** An engine that does not know its machine says 0, which as a limit would mean none. */
function atMost(wanted: number, available: number): number {
  return available > 0 ? Math.min(wanted, available) : wanted;
}

/** Its user is root in a namespace of its own, which may not change the kernel's settings. */
export function isRootless({ securityOptions }: EngineInfo): boolean {
  return securityOptions.some((option) => option.split(",").includes("name=rootless"));
}
