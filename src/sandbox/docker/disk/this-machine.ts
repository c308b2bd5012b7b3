import { release } from "node:os";
import type { EngineInfo } from "../engine-types.js";

/** It is in the code that every command loads first, and this module would delay that. */
const files = () => process.getBuiltinModule("node:fs/promises");

/** Whether the kernel of this process is the engine's too: a socket may lead into a virtual machine. */
export async function isThisMachine(
  endpoint: string,
  { kernel, memoryBytes }: Pick<EngineInfo, "kernel" | "memoryBytes">,
): Promise<boolean> {
  if (!endpoint.startsWith("unix://")) return false;
  const total = (await readMeminfo()).get("MemTotal");
  return kernel === release() && total === memoryBytes;
}

/** Bytes by name; empty where there is no such file. */
export async function readMeminfo(): Promise<Map<string, number>> {
  const text = await files()
    .readFile("/proc/meminfo", "latin1")
    .catch(() => "");
  const lines = text.matchAll(/^(\w+):\s+(\d+) kB$/gm);
  return new Map([...lines].map(([, name = "", kilobytes]) => [name, Number(kilobytes) * 1024]));
}

export interface FreeSpace {
  bytes: number;
  /** The number of files that can still be made; null if the file system has no limit. */
  files: number | null;
}

/** Null for a directory that is not here, as in a container that has only the engine's socket. */
export async function freeSpace(directory: string): Promise<FreeSpace | null> {
  try {
    const { bavail, bsize, files: all, ffree } = await files().statfs(directory);
    return { bytes: bavail * bsize, files: all === 0 ? null : ffree };
  } catch {
    return null;
  }
}
