import { BrigError, isBrigError } from "../../../errors.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { pause } from "../../../lib/time/pause.js";
import type { Sandbox } from "../../../sandbox/index.js";
import type { TaskStep } from "../../tasks/task.js";
import { type AgentOutcome, noUsage } from "../agents/attempt-agent.js";
import { explainFailure } from "../evidence.js";
import type { ImageUser } from "../place/image-user.js";
import { prepareStep } from "../place/prepare-environment.js";
import { agentNetwork, type PhaseNetworks, setupNetwork } from "../place/task-sandbox.js";
import { ExtendedLimit, type TimeTaken, timeAllowed } from "../processors.js";
import type { Attempt } from "./attempt.js";
import { describeExceeded, watchDisk } from "./disk-watch.js";

/** How long an agent may take to end after its time is over. This is not part of its time. */
const ENDING_MARGIN_MS = 30_000;
const MEBIBYTE = 1024 ** 2;

export interface AgentRun {
  outcome: Omit<AgentOutcome, "ending"> & {
    ending: AgentOutcome["ending"] | "out-of-memory" | "out-of-disk";
  };
  time: TimeTaken;
}

export interface AgentPlace {
  step: TaskStep;
  sandbox: Sandbox;
  container: { cwd: string; user: ImageUser; memoryLimitBytes: number; networks: PhaseNetworks };
  /** Called once the container is prepared for the step. */
  onPrepared(): void;
}

/**
 * Prepares the container for a step, and has the agent work on it for as long as it may. An agent that does not end is left
 * behind: its container is stopped next. Errors: what brig cannot do; the reason of the attempt's signal.
 */
export async function driveAgent(attempt: Attempt, place: AgentPlace): Promise<AgentRun> {
  const { step, sandbox, container } = place;
  const { cwd, user, networks } = container;
  const { task, signal } = attempt;
  networks.enter(sandbox, setupNetwork(task, step));
  try {
    // Programs of the container take part, so that an earlier step of the agent may make it fail.
    await prepareStep(sandbox, { step, cwd, user, signal });
  } catch (error) {
    signal?.throwIfAborted();
    const outcome = await agentsFault(attempt, { error, place });
    if (outcome === null) throw error;
    return { outcome, time: { durationMs: 0, extendedMs: 0, waitedForCpuMs: null } };
  }
  networks.enter(sandbox, agentNetwork(task, step));
  place.onPrepared();
  return await letWork(attempt, place);
}

async function letWork(attempt: Attempt, place: AgentPlace): Promise<AgentRun> {
  const { step, sandbox, container } = place;
  const { task, agent, limits, folder, signal } = attempt;
  const timeoutSec = agentTimeout(attempt, step);
  const allowed = timeAllowed(timeoutSec, limits.timeoutExtension);
  using limit = new ExtendedLimit(sandbox, { allowed, reason: timeIsOver(timeoutSec) });
  const full = new AbortController();
  using either = new AnySignal([signal, limit.signal, full.signal]);
  const ended = new AbortController();
  const { storageMb } = task.environment.limits;
  if (storageMb !== null) {
    const limitBytes = storageMb * MEBIBYTE;
    const onExceeded = (written: number) => full.abort(diskIsFull(written, limitBytes));
    void watchDisk(attempt.engine, { sandbox, limitBytes, onExceeded, signal: ended.signal });
  }
  try {
    const running = agent.run({
      task,
      step,
      sandbox,
      cwd: container.cwd,
      signal: either.signal,
      deadline: timeoutSec === null ? null : new Date(Date.now() + timeoutSec * 1000),
      budget: {
        maxTurns: limits.maxTurns ?? null,
        maxTokens: limits.maxTokens ?? null,
        maxCostUsd: limits.maxCostUsd ?? null,
      },
      folder,
    });
    const outcome = await Promise.race([running, leftBehind(either.signal, ended.signal)]);
    signal?.throwIfAborted();
    const time = await limit.end();
    if (full.signal.aborted) return { outcome: outOfDisk(full.signal, outcome), time };
    return { outcome: limit.isOver ? { ...outcome, ending: "timed-out" } : outcome, time };
  } catch (error) {
    signal?.throwIfAborted();
    const time = await limit.end();
    if (full.signal.aborted) return { outcome: outOfDisk(full.signal, endedBy("timed-out", null)), time };
    const outcome = limit.isOver ? endedBy("timed-out", null) : await agentsFault(attempt, { error, place });
    if (outcome === null) throw error;
    return { outcome, time };
  } finally {
    ended.abort();
  }
}

/** The run's own limit counts instead of the task's; null for none. */
function agentTimeout({ limits }: Pick<Attempt, "limits">, step: TaskStep): number | null {
  if (limits.agentTimeoutSec !== undefined) return limits.agentTimeoutSec;
  return step.agent.timeoutSec === null ? null : step.agent.timeoutSec * (limits.timeoutMultiplier ?? 1);
}

async function leftBehind(aborted: AbortSignal, ended: AbortSignal): Promise<AgentRun["outcome"]> {
  await new Promise<void>((resolve) => {
    if (aborted.aborted) resolve();
    aborted.addEventListener("abort", () => resolve(), { once: true, signal: ended });
  });
  await pause(ENDING_MARGIN_MS, ended);
  return endedBy("timed-out", "the agent did not end when its time was over");
}

function outOfDisk({ reason }: AbortSignal, outcome: AgentRun["outcome"]): AgentRun["outcome"] {
  return { ...outcome, ending: "out-of-disk", message: (reason as BrigError).message };
}

function diskIsFull(writtenBytes: number, limitBytes: number): BrigError {
  return new BrigError(describeExceeded("the agent's", { writtenBytes, limitBytes }), {
    code: "turn.timed-out",
  });
}

/** Outcome for an error that an agent can cause by itself, which is no failure of the infrastructure. Null for any other. */
async function agentsFault(
  { engine }: Attempt,
  { error, place: { sandbox, container } }: { error: unknown; place: AgentPlace },
): Promise<AgentRun["outcome"] | null> {
  if (isBrigError(error, "protocol.invalid")) return endedBy("failed", error.message);
  if (!isBrigError(error, "sandbox.gone")) return null;
  const { containerId } = sandbox;
  const { memoryLimitBytes } = container;
  const cause = await explainFailure(engine, { error, stage: "agent", containerId, memoryLimitBytes });
  if (cause?.kind === "memory-limit") return endedBy("out-of-memory", cause.message);
  return cause?.kind === "own-doing" ? endedBy("failed", cause.message) : null;
}

function endedBy(ending: AgentRun["outcome"]["ending"], message: string | null): AgentRun["outcome"] {
  return { ending, message, usage: noUsage, files: {} };
}

function timeIsOver(timeoutSec: number | null): BrigError {
  return new BrigError(`the agent's ${timeoutSec} seconds are over`, { code: "turn.timed-out" });
}
