import { setTimeout as sleep } from "node:timers/promises";
import { BrigError, isBrigError } from "../../errors.js";
import { afterLivedTime, type LivedTimer } from "../../lib/time/lived-time.js";

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 1000;
/** For how long at least a stream that was given up is tried to be opened again: it may only have been slow, and so the runner. */
const SLOW_RUNNER_MS = 5 * 60_000;

/** Nobody has closed it, but nothing comes any more. */
export class SilentStream extends Error {
  constructor() {
    super("nothing came from the runner any more");
  }
}

/** What the owner of a broken stream does for another one. */
export interface StreamOpener {
  /** For how long it is tried. */
  forMs: number;
  connect(): Promise<void>;
  /** What the engine says of the container: that it runs, that it is paused, or why there is nobody to dial any more. */
  diagnose(brokenForMs: number): Promise<"runs" | "paused" | BrigError>;
  /** Whether nobody wants the stream any more. */
  isGivenUp(): boolean;
}

/** Opens a stream again that broke for a reason. Null when that is done or not wanted any more, else why it cannot be. */
export async function reopenStream(reason: Error, opener: StreamOpener): Promise<BrigError | null> {
  const isSlow = reason instanceof SilentStream;
  const patience = new Patience(isSlow ? Math.max(opener.forMs, SLOW_RUNNER_MS) : opener.forMs);
  try {
    return await dialUntil(patience, reason, opener);
  } finally {
    patience.end();
  }
}

async function dialUntil(patience: Patience, reason: Error, opener: StreamOpener): Promise<BrigError | null> {
  const brokenAt = performance.now();
  let lastReason: unknown = reason;
  let wasPaused = false;
  for (let waitMs = FIRST_RETRY_MS; !opener.isGivenUp(); waitMs = Math.min(waitMs * 2, LAST_RETRY_MS)) {
    if (isBrigError(lastReason, "protocol.invalid")) return lastReason;
    const found = await opener
      .diagnose(performance.now() - brokenAt)
      .catch((error: unknown) => unreachable(error));
    if (wasPaused) patience.renew();
    wasPaused = found === "paused";
    if (isBrigError(found) && (found.reason !== "engine" || patience.isOver)) return found;
    if (patience.isOver && !wasPaused) return cannotReopen(lastReason);
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

/** How long a broken stream is tried to be opened again, in time that this process had for it. */
class Patience {
  readonly #ms: number;
  #timer: LivedTimer | undefined;
  #isOver = false;

  constructor(ms: number) {
    this.#ms = ms;
    this.renew();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  renew(): void {
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
