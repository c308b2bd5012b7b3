import { rm } from "node:fs/promises";
import type { AttemptResult } from "../../../batch/index.js";
import { runAttempt } from "../../../batch/index.js";
import { BrigError } from "../../../errors.js";
import type { OpenedPlace } from "../sandboxes/opened-place.js";
import { type AttemptPlace, newAttempt, taskNamed } from "./attempts.js";
import { HeldAgent } from "./held-agent.js";

/**
 * Starts the container of a task, in which the client is the agent. Errors: `serve.unknown`; `usage.invalid` for a
 * task of several steps; `engine.failed` when its container does not start; the signal's reason.
 */
export async function openTask(
  name: string,
  { place, signal }: { place: AttemptPlace; signal: AbortSignal },
): Promise<OpenedPlace> {
  const task = taskNamed(name, place.tasks);
  const [step] = task.steps;
  if (step === undefined || task.steps.length > 1)
    throw new BrigError(`the task ${task.name} has several steps`, {
      code: "usage.invalid",
      hint: "run it as an episode, whose agent gets one step after the other",
    });
  const ending = new AbortController();
  const agent = new HeldAgent();
  const attempt = await newAttempt(place, { task, agent, signal: ending.signal });
  const running = runAttempt(attempt).finally(() => rm(attempt.folder, { recursive: true, force: true }));
  running.catch(() => undefined);
  const end = async () => {
    ending.abort(new DOMException("the sandbox is removed", "AbortError"));
    await running.catch(() => undefined);
  };
  const leave = () => void end();
  signal.addEventListener("abort", leave, { once: true });
  try {
    if (signal.aborted) await end();
    const work = await Promise.race([agent.working, running.then(notStarted)]);
    signal.throwIfAborted();
    return {
      sandbox: work.sandbox,
      image: work.sandbox.image,
      mode: null,
      task: task.name,
      instruction: step.instruction,
      workingDirectory: work.cwd,
      async grade() {
        agent.done();
        return await running;
      },
      onEnding: null,
      close: end,
    };
  } catch (error) {
    await end();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

function notStarted({ failure }: AttemptResult): never {
  throw new BrigError(
    `the container of the task could not be started: ${failure?.message ?? "it was cancelled"}`,
    {
      code: "engine.failed",
      hint: "brig doctor checks the engine",
    },
  );
}
