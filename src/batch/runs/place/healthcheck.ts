import { BrigError } from "../../../errors.js";
import { pause } from "../../../lib/time/pause.js";
import type { Sandbox } from "../../../sandbox/index.js";
import type { TaskHealthcheck } from "../../tasks/task.js";

interface HealthOptions {
  check: TaskHealthcheck | null;
  cwd: string;
  signal?: AbortSignal | undefined;
  now?: (() => number) | undefined;
}

/** Error for a container whose health check never succeeded. */
export class UnhealthyContainer extends BrigError {
  constructor(message: string) {
    super(message, {
      code: "sandbox.gone",
      reason: "closed",
      hint: "run the health check's command in a container of the image to see why it fails",
    });
  }
}

/**
 * Waits until the command of a health check succeeds, as Docker does: failures within the start period do not count.
 * Error: `UnhealthyContainer`.
 */
export async function awaitHealth(
  sandbox: Sandbox,
  { check, cwd, signal, now = () => performance.now() }: HealthOptions,
): Promise<void> {
  if (check === null) return;
  const beganAt = now();
  for (let failures = 0; ; ) {
    const result = await sandbox.exec(["/bin/sh", "-c", check.command], {
      cwd,
      timeoutMs: Math.max(1, check.timeoutSec * 1000),
      signal,
      maxOutputBytes: 4096,
    });
    if (result.exitCode === 0) return;
    const isStarting = now() - beganAt < check.startPeriodSec * 1000;
    if (!isStarting) failures++;
    if (failures > 0 && failures >= check.retries)
      throw new UnhealthyContainer(
        `the health check failed ${failures} times, at last with exit code ${result.exitCode}`,
      );
    await pause((isStarting ? check.startIntervalSec : check.intervalSec) * 1000, signal);
  }
}
