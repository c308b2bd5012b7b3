import { retryDelayMs } from "../../model/endpoint/backoff.js";
import type { BrokenResponse, ModelClient } from "../../model/model-client.js";
import type { AgentEvent } from "./events.js";

/** An endpoint that has been silent twice in a row is most likely so the next time, and each time costs minutes. */
const MAX_SILENT_ATTEMPTS = 2;

/** How often one response is asked for again after it broke off. */
export class Reconnects {
  readonly #model: ModelClient;
  readonly #random: () => number;
  #attempts = 0;
  #silentAttempts = 0;

  constructor(model: ModelClient, { random }: { random: () => number }) {
    this.#model = model;
    this.#random = random;
  }

  /** When to ask again. Throws the response's error where it is not worth asking again. */
  next({ error, retryAfterMs, isSilent = false }: BrokenResponse): AgentEvent & { kind: "reconnecting" } {
    const maxAttempts = this.#model.maxStreamRetries;
    this.#attempts++;
    this.#silentAttempts = isSilent ? this.#silentAttempts + 1 : 0;
    if (this.#attempts > maxAttempts || this.#silentAttempts >= MAX_SILENT_ATTEMPTS) throw error;
    const delayMs = retryDelayMs(this.#attempts, { retryAfterMs, random: this.#random });
    return { kind: "reconnecting", attempt: this.#attempts, maxAttempts, delayMs, reason: error.message };
  }
}
