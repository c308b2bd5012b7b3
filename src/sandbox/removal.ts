import { BrigError, isBrigError } from "../errors.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import { pause } from "../lib/time/pause.js";
import { TimeLimit } from "../lib/time/time-limit.js";
import type { Engine } from "./docker/engine-types.js";

type RemovingEngine = Pick<
  Engine,
  "removeContainer" | "waitContainer" | "waitRemoved" | "inspectContainer" | "unpauseContainer"
>;

/**
 * The limit of each attempt. An engine that removes many containers takes seconds for each, and goes on after
 * the limit: the next attempt waits for the same removal.
 */
const ATTEMPT_LIMITS_MS = [15_000, 10_000, 20_000];
/** The time that a runner may take to end after it was asked to. Having the engine kill it takes longer. */
const END_GRACE_MS = 1_000;
const BETWEEN_ATTEMPTS_MS = 200;
/** The time to wait for any other answer. A busy engine takes seconds. */
const ANSWER_LIMIT_MS = 30_000;
/** The time that a container may take to appear after a create request that got no answer. */
const CREATE_GRACE_MS = 5_000;
const POLL_EVERY_MS = 100;

interface Ending {
  /** Its runner was asked to end. */
  isEnding?: boolean;
  /** The engine keeps it when its runner has ended. */
  staysAtEnd?: boolean;
}

/**
 * Removes a container, and resolves when the engine confirms that it is gone, so that nothing in it runs any
 * more. Error: `engine.failed`; the container may still be running.
 */
export async function removeAndConfirm(
  engine: RemovingEngine,
  id: string,
  { isEnding = false, staysAtEnd = false }: Ending = {},
): Promise<void> {
  const wait = (signal: AbortSignal) =>
    staysAtEnd ? engine.waitContainer(id, { signal }) : engine.waitRemoved(id, { signal });
  if (isEnding && (await endsByItself(wait)) && !staysAtEnd) return;
  try {
    await withRetries(async (signal, { isFirst }) => {
      if (!isFirst) await unpause(engine, id);
      await engine.removeContainer(id, { signal });
    });
  } catch (error) {
    throw notRemoved(id, error);
  }
}

/** Whether a container whose runner was asked to end does so soon: `wait` asks the engine. */
export async function endsByItself(wait: (signal: AbortSignal) => Promise<unknown>): Promise<boolean> {
  using limit = new TimeLimit(END_GRACE_MS);
  try {
    await beforeAbort(wait(limit.signal), limit.signal);
    return true;
  } catch {
    return false;
  }
}

/** Asks the engine up to three times, each time with a limit. Rejects with the last failure. */
export async function withRetries<T>(
  ask: (signal: AbortSignal, attempt: { isFirst: boolean }) => Promise<T>,
): Promise<T> {
  let failure: unknown;
  for (const [attempt, limitMs] of ATTEMPT_LIMITS_MS.entries()) {
    if (attempt > 0) await pause(BETWEEN_ATTEMPTS_MS);
    try {
      return await inTime((signal) => ask(signal, { isFirst: attempt === 0 }), limitMs);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Waits no longer for an engine that says nothing. Error: `engine.unreachable`. */
export async function inTime<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  limitMs = ANSWER_LIMIT_MS,
): Promise<T> {
  using limit = new TimeLimit(limitMs);
  try {
    return await beforeAbort(ask(limit.signal), limit.signal);
  } catch (cause) {
    if (!limit.isOver) throw cause;
    throw new BrigError("the engine did not answer in time", {
      code: "engine.unreachable",
      hint: "check the engine with `brig doctor`",
      cause,
    });
  }
}

/**
 * A paused process takes no signal, and gVisor would keep its container for ever. Ignores failures of the
 * engine, since the removal that follows reports them.
 */
async function unpause(engine: RemovingEngine, id: string): Promise<void> {
  using limit = new TimeLimit(ATTEMPT_LIMITS_MS[0] ?? 0);
  try {
    const isPaused = (await engine.inspectContainer(id, { signal: limit.signal }))?.paused;
    if (isPaused) await engine.unpauseContainer(id);
  } catch (error) {
    if (!isBrigError(error) && !limit.isOver) throw error;
  }
}

/** Waits for a container whose create request got no answer. Null if none appears. */
export async function waitForContainer(engine: RemovingEngine, name: string): Promise<string | null> {
  using limit = new TimeLimit(CREATE_GRACE_MS);
  const { signal } = limit;
  for (;;) {
    try {
      const made = await engine.inspectContainer(name, { signal });
      if (made !== null) return made.id;
      await pause(POLL_EVERY_MS, signal);
    } catch (error) {
      if (!limit.isOver) throw error;
      return null;
    }
  }
}

/**
 * Removes what a create request without an answer has left where no container has appeared: with Podman, volumes were made for it. Error: the
 * engine's, `engine.unreachable` after a few seconds.
 */
export async function removeUnanswered(engine: RemovingEngine, name: string): Promise<void> {
  await inTime((signal) => engine.removeContainer(name, { signal }), CREATE_GRACE_MS);
}

function notRemoved(id: string, cause: unknown): BrigError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const short = id.slice(0, 12);
  // The engine opens each directory of a tree while it removes what is below, so a command can make one that is too deep for it.
  const hint =
    isBrigError(cause) && cause.errno === "EMFILE"
      ? "nothing runs in it, but a tree in it is too deep for the engine to remove: allow the engine more open files (LimitNOFILE of its service), restart it, then: brig gc"
      : `it may still be running, and its placeholders stay; remove it with: docker rm -f ${short}, then: brig gc`;
  return new BrigError(`the sandbox's container ${short} could not be removed: ${reason}`, {
    code: "engine.failed",
    hint,
    cause,
  });
}
