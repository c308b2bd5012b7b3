import { join, posix } from "node:path";
import type { Sandbox } from "../../../sandbox/index.js";
import type { TaskEnvironment, TaskStep } from "../../tasks/task.js";
import { awaitHealth, UnhealthyContainer } from "./healthcheck.js";
import type { ImageUser } from "./image-user.js";
import { requireUnixScript } from "./line-ends.js";
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
