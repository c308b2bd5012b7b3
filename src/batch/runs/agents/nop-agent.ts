import type { AttemptAgent } from "./attempt-agent.js";
import { noUsage } from "./no-usage.js";

/** Does nothing. A task whose tests pass all the same is broken. */
export function nopAgent(): AttemptAgent {
  return {
    name: "nop",
    model: null,
    run: async () => ({ ending: "not-run", message: null, usage: noUsage, files: {} }),
  };
}
