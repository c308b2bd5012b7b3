import { readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { BrigError } from "../../../errors.js";
import { pause } from "../../../lib/time/pause.js";
import type { Sandbox } from "../../../sandbox/index.js";
import type { TaskEnvironment, TaskHealthcheck, TaskStep } from "../../tasks/task.js";
import { hasCarriageReturn } from "../../tasks/values.js";
import type { ImageUser } from "./image-user.js";
import type { OpenTaskSandbox } from "./task-sandbox.js";
import { uploadCopy, uploadDirectory } from "./upload-directory.js";

/** Usual time limit of tests. */
const SETUP_LIMIT_MS = 600_000;

/**
 * Puts the task's files into the working directory of a new container, and waits until its health check succeeds. Error:
 * `UnhealthyContainer`.
 */
export async function prepareEnvironment(
  { sandbox, cwd, user }: OpenTaskSandbox,
  { files, copies = [], healthcheck }: TaskEnvironment,
  { signal }: { signal?: AbortSignal | undefined },
): Promise<void> {
  if (files !== null) await uploadDirectory(sandbox, files, { to: cwd, owner: user });
  for (const copy of copies) await uploadCopy(sandbox, copy, user);
  await awaitHealth(sandbox, { check: healthcheck, cwd, signal });
}

/**
 * Makes the container ready for a step: its files, the script that prepares it, its health check. Error:
 * `UnhealthyContainer`, also if the script fails; `usage.invalid` for a script that no shell can run.
 */
export async function prepareStep(
  sandbox: Sandbox,
  {
    step,
    cwd,
    user,
    signal,
  }: { step: TaskStep; cwd: string; user: ImageUser; signal?: AbortSignal | undefined },
): Promise<void> {
  const { files, setupScript, healthcheck } = step;
  if (files !== null && setupScript !== null) await requireUnixScript(join(files, setupScript));
  if (files !== null) await uploadDirectory(sandbox, files, { to: cwd, owner: user });
  if (setupScript !== null) {
    const argv = ["/bin/bash", posix.join(cwd, setupScript)];
    const { exitCode } = await sandbox.exec(argv, {
      cwd,
      signal,
      timeoutMs: SETUP_LIMIT_MS,
      maxOutputBytes: 4096,
    });
    if (exitCode !== 0)
      throw new UnhealthyContainer(`the script ${setupScript} failed with exit code ${exitCode}`);
  }
  await awaitHealth(sandbox, { check: healthcheck, cwd, signal });
}

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
async function awaitHealth(
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

/** Whether a script was written with the line ends of Windows, with which no shell of Linux can run it. */
export function isSpoilt(script: Buffer): boolean {
  return hasCarriageReturn(script.subarray(0, FIRST_LINE_BYTES).toString("latin1"));
}

const FIRST_LINE_BYTES = 4096;

export function spoiltScript(path: string): BrigError {
  return new BrigError(`${path} cannot be run: its lines end with carriage returns, as on Windows`, {
    code: "usage.invalid",
    hint: "save it with the line ends of Unix; in a repository, .gitattributes can say *.sh text eol=lf",
  });
}

/** Refuses a script of the host with the line ends of Windows. Errors: `usage.invalid`, those of the file system. */
export async function requireUnixScript(path: string): Promise<void> {
  if (isSpoilt(await readFile(path))) throw spoiltScript(path);
}
