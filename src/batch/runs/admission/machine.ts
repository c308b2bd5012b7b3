import type { Engine } from "../../../sandbox/index.js";
import { freeSpace, isThisMachine, readMeminfo } from "../../../sandbox/index.js";

/** Resources of the machine that the engine runs on, and what is left of them. */
export interface Machine {
  cpus: number;
  memoryBytes: number;
  /** Memory that programs can use without swapping; null if the engine is on another machine. */
  availableMemoryBytes: number | null;
  /** Free space on the file system with the engine's images and containers; null if the engine is on another machine. */
  freeDiskBytes: number | null;
}

/** Asks the kernel, if the engine is on this machine, else only the engine. */
export async function measureMachine(engine: Engine): Promise<Machine> {
  const { cpus, memoryBytes, dockerRootDir } = await engine.info();
  if (!(await isLocal(engine))) return { cpus, memoryBytes, availableMemoryBytes: null, freeDiskBytes: null };
  const [meminfo, space] = await Promise.all([readMeminfo(), freeSpace(dockerRootDir)]);
  const availableMemoryBytes = meminfo.get("MemAvailable") ?? null;
  return { cpus, memoryBytes, availableMemoryBytes, freeDiskBytes: space?.bytes ?? null };
}

/** Whether the kernel of this process is the engine's too. */
export async function isLocal(engine: Engine): Promise<boolean> {
  return engine.endpoint.startsWith("unix://") && (await isThisMachine(engine.endpoint, await engine.info()));
}
