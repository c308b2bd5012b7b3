import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { acquireLock, holderOf, type LockOptions } from "../../lib/file-lock.js";
import type { HostProcesses } from "../../lib/owner.js";

/** Named by the user's id: in a container a user need not have a name. */
export function lockDirectory(): string {
  return join(tmpdir(), `brig-${process.getuid?.() ?? 0}`);
}

/** Longer than any build takes. */
const longestMs = 60 * 60 * 1000;

/**
 * Runs `work` while no other process of this user does under the same name. This only saves time: builds of
 * the same content have the same result. Error: `image.build-failed` after an hour's wait.
 */
export async function withLock<T>(
  name: string,
  work: () => Promise<T>,
  options: Pick<LockOptions, "onWait" | "signal"> = {},
): Promise<T> {
  const outcome = await acquireLock(await lockFile(name), {
    ...options,
    waitMs: longestMs,
    presumedDeadAfterMs: longestMs,
  });
  if (outcome.kind === "busy")
    throw new BrigError(`process ${outcome.holder.owner.pid} has held the lock of ${name} for an hour`, {
      code: "image.build-failed",
      hint: `if that process is not brig, remove ${outcome.holder.lockFile}`,
    });
  using _lock = outcome.lock;
  return await work();
}

/** Whether a living process of this user works under that name. */
export async function isLocked(name: string, processes: HostProcesses): Promise<boolean> {
  return (await holderOf(await lockFile(name), processes)) !== null;
}

async function lockFile(name: string): Promise<string> {
  const directory = lockDirectory();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return join(directory, name.replace(/[^\w.-]/g, "_"));
}
