import type { ModelClient, ModelEvent, ModelRequest } from "../../../agent/index.js";

/** The model of a session. Between two turns it can be exchanged for another one of the same provider. */
export class SwitchableModel implements ModelClient {
  #client: ModelClient;

  constructor(client: ModelClient) {
    this.#client = client;
  }

  use(client: ModelClient): void {
    this.#client = client;
  }

  get provider(): string {
    return this.#client.provider;
  }

  get model(): string {
    return this.#client.model;
  }

  get maxStreamRetries(): number {
    return this.#client.maxStreamRetries;
  }

  get takesOnlyFunctions(): boolean | undefined {
    return this.#client.takesOnlyFunctions;
  }

  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent> {
    return this.#client.stream(request, signal);
  }
}
