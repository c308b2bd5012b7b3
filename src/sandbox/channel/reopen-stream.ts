import { setTimeout as sleep } from "node:timers/promises";
import { BrigError, isBrigError } from "../../errors.js";
import { afterLivedTime, type LivedTimer, withinLivedTime } from "../../lib/time/lived-time.js";
import type { EngineStream } from "../docker/engine-types.js";

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 1000;
/** The time that the engine may take to describe the state of the container. */
const DIAGNOSIS_WITHIN_MS = 10_000;
/** The time that the engine may take to open a stream. */
const DIAL_WITHIN_MS = 15_000;
/** The least time to try to reopen a stream that went silent: perhaps the machine is only slow. */
const SLOW_RUNNER_MS = 5 * 60_000;

/** Why the host closed a stream: it was still open, but nothing arrived any more. */
export class SilentStream extends Error {
  constructor() {
    super("nothing came from the runner any more");
  }
}

/** The means to reopen a stream. */
export interface StreamOpener {
  tryForMs: number;
  connect(): Promise<void>;
  diagnose(brokenForMs: number): Promise<"runs" | "paused" | BrigError>;
  isGivenUp(): boolean;
}

/** Reopens a broken stream. Resolves to null when it is open or no longer needed, else to an error. */
export async function reopenStream(reason: Error, opener: StreamOpener): Promise<BrigError | null> {
  const isSlow = reason instanceof SilentStream;
  const limit = new ReconnectLimit(isSlow ? Math.max(opener.tryForMs, SLOW_RUNNER_MS) : opener.tryForMs);
  try {
    return await dialUntil(limit, reason, opener);
  } finally {
    limit.end();
  }
}

async function dialUntil(
  limit: ReconnectLimit,
  reason: Error,
  opener: StreamOpener,
): Promise<BrigError | null> {
  const brokenAt = performance.now();
  let lastReason: unknown = reason;
  let wasPaused = false;
  for (let waitMs = FIRST_RETRY_MS; !opener.isGivenUp(); waitMs = Math.min(waitMs * 2, LAST_RETRY_MS)) {
    if (isBrigError(lastReason, "protocol.invalid")) return lastReason;
    const diagnosis = opener.diagnose(performance.now() - brokenAt);
    const found = await withinLivedTime(
      diagnosis,
      DIAGNOSIS_WITHIN_MS,
      new Error("the engine did not answer"),
    ).catch((error: unknown) => unreachable(error));
    if (wasPaused) limit.restart();
    wasPaused = found === "paused";
    if (isBrigError(found) && (found.reason !== "engine" || limit.isOver)) return found;
    if (limit.isOver && !wasPaused) return cannotReopen(lastReason);
    try {
      if (found === "runs") {
        await opener.connect();
        return null;
      }
    } catch (error) {
      lastReason = error;
    }
    await sleep(waitMs);
  }
  return null;
}

/** Opens a stream. One that opens after the limit is closed: another has taken its place by then. */
export async function dialInTime(dial: () => Promise<EngineStream>): Promise<EngineStream> {
  const dialling = dial();
  try {
    return await withinLivedTime(dialling, DIAL_WITHIN_MS, new Error("the engine opened no stream in time"));
  } catch (error) {
    dialling.then(({ stream }) => stream.on("error", () => undefined).destroy()).catch(() => undefined);
    throw error;
  }
}

/** A time limit that does not count the time in which this process was suspended. */
class ReconnectLimit {
  readonly #ms: number;
  #timer: LivedTimer | undefined;
  #isOver = false;

  constructor(ms: number) {
    this.#ms = ms;
    this.restart();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  restart(): void {
    this.end();
    this.#isOver = false;
    this.#timer = afterLivedTime(this.#ms, () => {
      this.#isOver = true;
    });
  }

  end(): void {
    this.#timer?.cancel();
  }
}

function unreachable(cause: unknown): BrigError {
  return new BrigError("the container engine stopped answering while the sandbox was in use", {
    code: "sandbox.gone",
    reason: "engine",
    hint: "check the engine with `brig doctor`; the sandbox's processes end with its container",
    cause,
  });
}

function cannotReopen(cause: unknown): BrigError {
  return new BrigError("the stream to the sandbox broke and could not be opened again", {
    code: "sandbox.gone",
    reason: "engine",
    hint: "check the engine with `brig doctor`",
    cause,
  });
}
