import { Gate } from "../../lib/time/gate.js";
import { SharedWork } from "../../lib/time/shared-work.js";
import type { Resolve } from "./dial.js";

/**
 * A lookup holds one of Node's few threads until the name server answers, which a program can delay by its choice of
 * names. So all sandboxes of this process together hold two of them, and one sandbox holds one.
 */
const MOST_OF_PROCESS = 2;
const MOST_OF_SANDBOX = 1;
const allSandboxes = new Gate();

/**
 * Looks up names for one sandbox, each name once for everybody who waits for it. Whoever waits longer than `timeoutMs`
 * gets ETIMEDOUT.
 */
export function boundedLookups(resolve: Resolve, { timeoutMs }: { timeoutMs: number }): Resolve {
  const sandbox = new Gate();
  const shared = new SharedWork<readonly string[]>();
  return async (name) => {
    const timedOut = new AbortController();
    const timer = setTimeout(() => timedOut.abort(new LookupTimeout(name)), timeoutMs);
    const lookUp = (signal: AbortSignal) =>
      sandbox.pass(() => allSandboxes.pass(() => resolve(name), { width: MOST_OF_PROCESS, signal }), {
        width: MOST_OF_SANDBOX,
        signal,
      });
    try {
      return await shared.join(name, lookUp, timedOut.signal);
    } finally {
      clearTimeout(timer);
    }
  };
}

class LookupTimeout extends Error {
  readonly code = "ETIMEDOUT";

  constructor(name: string) {
    super(`the lookup of ${name} took too long`);
  }
}
