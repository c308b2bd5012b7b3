import { link, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 250;
/** No build takes this long: an older lock belongs to a process id that was given out again. */
const oldestMs = 60 * 60 * 1000;

export interface LockOptions {
  /** Called once when another process holds the lock. */
  onWait?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Runs `work` while no other process of this user runs work under the same name. It spares double work and is not
 * needed for correctness: two builds of one content have one result.
 */
export async function withLock<T>(
  name: string,
  work: () => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const directory = join(tmpdir(), `brig-${userInfo().username}`);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, `${name.replace(/[^\w.-]/g, "_")}.lock`);
  await acquire(file, options);
  try {
    return await work();
  } finally {
    await rm(file, { force: true });
  }
}

async function acquire(file: string, { onWait, signal }: LockOptions): Promise<void> {
  let hasWaited = false;
  while (!(await tryAcquire(file))) {
    signal?.throwIfAborted();
    if (await isAbandoned(file)) {
      await rm(file, { force: true });
      continue;
    }
    if (!hasWaited) onWait?.();
    hasWaited = true;
    await sleep(pollMs, undefined, { signal });
  }
}

/** The lock appears with its holder's id already in it, since it is linked from a finished file. */
async function tryAcquire(file: string): Promise<boolean> {
  const own = `${file}.${process.pid}.${process.hrtime.bigint()}`;
  await writeFile(own, String(process.pid));
  try {
    await link(own, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(own, { force: true });
  }
}

async function isAbandoned(file: string): Promise<boolean> {
  try {
    const [holder, { mtimeMs }] = await Promise.all([readFile(file, "utf8"), stat(file)]);
    return Date.now() - mtimeMs > oldestMs || !isAlive(Number(holder));
  } catch {
    return true;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
