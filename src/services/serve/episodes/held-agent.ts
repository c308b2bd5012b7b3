import type { AgentWork, AttemptAgent } from "../../../batch/index.js";
import { noUsage } from "../../../batch/index.js";

/** An agent that is somewhere else: the attempt waits until it is told that the agent is done. */
export class HeldAgent implements AttemptAgent {
  readonly name = "remote";
  readonly model = null;
  /** The container in which it works, once that has been started. */
  readonly working: Promise<AgentWork>;
  readonly #isDone = new AbortController();
  #begin!: (work: AgentWork) => void;

  constructor() {
    this.working = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  async run(work: AgentWork) {
    this.#begin(work);
    await new Promise<void>((resolve) => {
      for (const signal of [work.signal, this.#isDone.signal]) {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      }
    });
    return { ending: "completed", message: null, usage: noUsage, files: {} } as const;
  }

  done(): void {
    this.#isDone.abort();
  }
}
