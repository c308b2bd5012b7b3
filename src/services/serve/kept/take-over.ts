import { isBrigError } from "../../../errors.js";
import { afterLivedTime } from "../../../lib/time/lived-time.js";
import { pause } from "../../../lib/time/pause.js";

interface TakeOver {
  /** Goes on with what another process has left. */
  take: () => Promise<void>;
  /** Called when that cannot be, or is never going to be. */
  giveUp: (error: unknown) => Promise<void> | void;
  /** Ends the attempts. */
  signal: AbortSignal;
  /** Called with the first failure of an engine that is asked again. */
  onWarning: (error: unknown) => void;
}

/** After so long the container has most likely ended with its lease, and those who call wait for the others. */
const WAIT_MS = 60_000;
const [FIRST_RETRY_MS, LAST_RETRY_MS] = [250, 10_000];

/**
 * Takes over what a process has left that is gone. An engine that fails is asked again until it says how the container is: that goes on after this
 * has resolved, which is after the first attempt, or when that takes too long.
 */
export async function takeOver({ take, giveUp, signal, onWarning }: TakeOver): Promise<void> {
  const attempt = async (isFirst: boolean): Promise<boolean> => {
    try {
      await take();
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      if (isBrigError(error) && error.code.startsWith("engine.")) {
        if (isFirst) onWarning(error);
        return false;
      }
      onWarning(error);
      await giveUp(error);
      return true;
    }
  };
  const first = attempt(true);
  void (async () => {
    for (let waitMs = FIRST_RETRY_MS, isOver = await first; !isOver; isOver = await attempt(false)) {
      await pause(waitMs, signal);
      waitMs = Math.min(2 * waitMs, LAST_RETRY_MS);
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) onWarning(error);
  });
  let isLate: (() => void) | undefined;
  const late = new Promise<void>((resolve) => {
    isLate = resolve;
  });
  const timer = afterLivedTime(WAIT_MS, () => isLate?.());
  await Promise.race([first.catch(() => false), late]);
  timer.cancel();
}
