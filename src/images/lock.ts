import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BrigError } from "../errors.js";
import { acquireLock, type LockOptions } from "../lib/file-lock.js";

/** Named by the user's number: in a container a user need not have a name. */
export function lockDirectory(): string {
  return join(tmpdir(), `brig-${process.getuid?.() ?? 0}`);
}

/** No build takes this long. */
const longestMs = 60 * 60 * 1000;

/**
 * Runs `work` while no other process of this user runs work under the same name. It spares double work and is not
 * needed for correctness: two builds of one content have one result. Whoever works longer than anybody can is `image.build-failed`.
 */
export async function withLock<T>(
  name: string,
  work: () => Promise<T>,
  options: Pick<LockOptions, "onWait" | "signal"> = {},
): Promise<T> {
  const directory = lockDirectory();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, name.replace(/[^\w.-]/g, "_"));
  const outcome = await acquireLock(file, {
    ...options,
    patienceMs: longestMs,
    presumedDeadAfterMs: longestMs,
  });
  if (outcome.kind === "busy")
    throw new BrigError(`process ${outcome.holder.owner.pid} has been at work on ${name} for an hour`, {
      code: "image.build-failed",
      hint: `if no brig is at work there, remove ${outcome.holder.lockFile}`,
    });
  using _lock = outcome.lock;
  return await work();
}
