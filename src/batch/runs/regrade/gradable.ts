import { stat } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import type { Task } from "../../tasks/task.js";
import { MANIFEST_FILE } from "../artifacts/artifact-manifest.js";
import type { RunStore } from "../batch/run-store.js";
import { stepFolder } from "../grading/step-folder.js";
import type { AttemptResult } from "../results/attempt-result.js";

const SHOWN_ATTEMPTS = 10;

export interface GradableAttempt {
  task: Task;
  attempt: number;
}

/** Then nobody can grade an attempt again: its container is gone. */
export function needsAgentsContainer({ steps }: Pick<Task, "steps">): boolean {
  return steps.some(({ verifier }) => verifier.mode === "shared");
}

/** Error: `usage.invalid` with the attempts that cannot be graded from their folders. Nothing has been changed then. */
export async function refuseUngradable(store: RunStore, attempts: readonly GradableAttempt[]): Promise<void> {
  const faults: string[] = [];
  for (const { task, attempt } of attempts) {
    const reason = await whyNotGradable(store, { task, attempt });
    if (reason !== null) faults.push(`  ${task.name} #${attempt}: ${reason}`);
  }
  if (faults.length === 0) return;
  const left = faults.length - SHOWN_ATTEMPTS;
  const lines = [...faults.slice(0, SHOWN_ATTEMPTS), ...(left > 0 ? [`  and ${left} more`] : [])];
  throw new BrigError(`these attempts cannot be graded again:\n${lines.join("\n")}`, {
    code: "usage.invalid",
    hint: "leave their tasks out with --exclude, or run them again",
  });
}

async function whyNotGradable(store: RunStore, { task, attempt }: GradableAttempt): Promise<string | null> {
  const result = await store.readResult({ task: task.name, attempt });
  if (result === null) return "its result.json is missing or damaged";
  const reached = task.steps.slice(0, result.steps.length);
  if (reached.some(({ verifier }) => verifier.mode !== "separate"))
    return "its tests run in the agent's container, which is gone";
  const folder = store.attemptPath({ task: task.name, attempt });
  for (const step of reached)
    if (!(await isFile(join(stepFolder(folder, { task, step }), MANIFEST_FILE))))
      return "its artifacts were not kept";
  return reached.length === 0 ? "its agent did not end" : null;
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true;
}

/** Returns the attempt as it was before it was graded. It is not counted in any score until it is graded again. */
export function withoutGrade(result: AttemptResult): AttemptResult {
  return {
    ...result,
    status: "unscored",
    reward: null,
    rewards: {},
    failure: null,
    steps: result.steps.map((step) => ({ ...step, rewards: null, verification: null })),
    durations: { ...result.durations, verifierMs: null },
  };
}
