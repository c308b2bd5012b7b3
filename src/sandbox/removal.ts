import type { Engine } from "../docker/engine-types.js";
import { BrigError, isBrigError } from "../errors.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import { pause } from "../lib/time/pause.js";
import { TimeLimit } from "../lib/time/time-limit.js";

type RemovingEngine = Pick<
  Engine,
  "removeContainer" | "waitRemoved" | "inspectContainer" | "unpauseContainer"
>;

/** How long each attempt may take: an engine that removes many at once takes seconds for each. A removal that the engine goes on with alone is waited for by the next. */
const ATTEMPT_LIMITS_MS = [15_000, 10_000, 20_000];
/** How long a container whose runner was asked to end may take before the engine is asked to kill it, which takes longer. */
const BY_ITSELF_MS = 1_000;
const BETWEEN_ATTEMPTS_MS = 200;
/** How long a container may take to appear whose creation the engine did not answer. */
const APPEARANCE_MS = 5_000;
const LOOK_EVERY_MS = 100;

/**
 * Removes a container, and resolves when the engine says that it is gone: whatever ran in it has ended then. `isEnding`: its first process
 * was asked to end. Error: `engine.failed`, and the container may go on running.
 */
export async function removeForCertain(
  engine: RemovingEngine,
  id: string,
  { isEnding = false } = {},
): Promise<void> {
  if (isEnding && (await goesByItself(engine, id))) return;
  try {
    await persistently(async (signal, { isFirst }) => {
      if (!isFirst) await wake(engine, id);
      await engine.removeContainer(id, { signal });
    });
  } catch (error) {
    throw notRemoved(id, error);
  }
}

async function goesByItself(engine: RemovingEngine, id: string): Promise<boolean> {
  using limit = new TimeLimit(BY_ITSELF_MS);
  try {
    await beforeAbort(engine.waitRemoved(id, { signal: limit.signal }), limit.signal);
    return true;
  } catch {
    return false;
  }
}

/** One answer of the engine that is a failure, or does not come, is not the last word. Rejects with the last. */
export async function persistently<T>(
  ask: (signal: AbortSignal, attempt: { isFirst: boolean }) => Promise<T>,
): Promise<T> {
  let failure: unknown;
  for (const [attempt, limitMs] of ATTEMPT_LIMITS_MS.entries()) {
    if (attempt > 0) await pause(BETWEEN_ATTEMPTS_MS);
    using limit = new TimeLimit(limitMs);
    try {
      return await beforeAbort(ask(limit.signal, { isFirst: attempt === 0 }), limit.signal);
    } catch (error) {
      failure = limit.isOver ? new BrigError("no answer in time", { code: "engine.unreachable" }) : error;
    }
  }
  throw failure;
}

/** A paused process takes no signal: gVisor's container would stay for ever. What goes wrong here the removal will say. */
async function wake(engine: RemovingEngine, id: string): Promise<void> {
  using limit = new TimeLimit(ATTEMPT_LIMITS_MS[0] ?? 0);
  try {
    const isPaused = (await engine.inspectContainer(id, { signal: limit.signal }))?.paused;
    if (isPaused) await engine.unpauseContainer(id);
  } catch (error) {
    if (!isBrigError(error) && !limit.isOver) throw error;
  }
}

/** The id of a container whose creation was not answered: the engine may have made it, or be at it still. Null when none appears. */
export async function findUnanswered(engine: RemovingEngine, name: string): Promise<string | null> {
  using limit = new TimeLimit(APPEARANCE_MS);
  const { signal } = limit;
  for (;;) {
    try {
      const made = await engine.inspectContainer(name, { signal });
      if (made !== null) return made.id;
      await pause(LOOK_EVERY_MS, signal);
    } catch (error) {
      if (!limit.isOver) throw error;
      return null;
    }
  }
}

function notRemoved(id: string, cause: unknown): BrigError {
  const words = cause instanceof Error ? cause.message : String(cause);
  return new BrigError(`the sandbox's container ${id.slice(0, 12)} could not be removed: ${words}`, {
    code: "engine.failed",
    hint: `it may go on running, and its placeholders stay; remove it with: docker rm -f ${id.slice(0, 12)}, then: brig gc`,
    cause,
  });
}
