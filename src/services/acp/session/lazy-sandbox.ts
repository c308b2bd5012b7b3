import type { AgentSandbox } from "../../../agent/index.js";
import { BrigError } from "../../../errors.js";

/** A sandbox that starts when `start` is called. Until then `source` waits; `giveUp` makes that wait fail. */
export class LazySandbox {
  readonly #open: () => Promise<AgentSandbox>;
  readonly #begun: Promise<void>;
  #begin: () => void = () => undefined;
  #giveUp: (reason: unknown) => void = () => undefined;
  #hasBegun = false;

  constructor(open: () => Promise<AgentSandbox>) {
    this.#open = open;
    this.#begun = new Promise((resolve, reject) => {
      this.#begin = resolve;
      this.#giveUp = reject;
    });
    this.#begun.catch(() => undefined);
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** The sandbox option of `openConversation`, which calls it again when the sandbox was lost. */
  readonly source = async (): Promise<AgentSandbox> => {
    await this.#begun;
    return await this.#open();
  };

  /** Opens the sandbox for whoever waits in `source`, now or later. */
  start(): void {
    this.#hasBegun = true;
    this.#begin();
  }

  /** Call this when the conversation has closed its sandbox. It opens the next one by itself when it needs one. */
  released(): void {
    this.#hasBegun = false;
  }

  /** Makes waiting for a sandbox that was never started fail. Without effect after `start`. */
  giveUp(): void {
    this.#giveUp(new BrigError("the session has closed its sandbox", { code: "aborted" }));
  }
}
