import { retryDelayMs } from "../model/endpoint/backoff.js";
import type { BrokenResponse, ModelClient } from "../model/model-client.js";
import type { AgentEvent } from "./events.js";

/** An endpoint that was silent twice in a row most likely stays silent, and each attempt costs minutes. */
const MAX_SILENT_ATTEMPTS = 2;

/** Decides when a response that broke off is requested again. */
export class Reconnects {
  readonly #model: ModelClient;
  readonly #random: () => number;
  #attempts = 0;
  #silentAttempts = 0;

  constructor(model: ModelClient, { random }: { random: () => number }) {
    this.#model = model;
    this.#random = random;
  }

  /** Throws the response's error if there is to be no further attempt. */
  next({ error, retryAfterMs, isSilent = false }: BrokenResponse): AgentEvent & { kind: "reconnecting" } {
    const maxAttempts = this.#model.maxStreamRetries;
    this.#attempts++;
    this.#silentAttempts = isSilent ? this.#silentAttempts + 1 : 0;
    if (this.#attempts > maxAttempts || this.#silentAttempts >= MAX_SILENT_ATTEMPTS) throw error;
    const delayMs = retryDelayMs(this.#attempts, { retryAfterMs, random: this.#random });
    return { kind: "reconnecting", attempt: this.#attempts, maxAttempts, delayMs, reason: error.message };
  }
}
