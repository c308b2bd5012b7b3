import { createModelClient } from "../../src/agent/model/create-model-client.js";
import type { ModelClientOptions } from "../../src/agent/model/endpoint/endpoint-client.js";
import { ModelFailure } from "../../src/agent/model/endpoint/model-failure.js";
import { textMessage } from "../../src/agent/model/items.js";
import type { ModelEvent, ModelRequest } from "../../src/agent/model/model-client.js";
import type { ModelProvider } from "../../src/agent/model/provider.js";
import { bearerKey } from "../../src/agent/model/static-credentials.js";
import { isBrigError } from "../../src/errors.js";
import { localProvider, type Reply, startResponsesServer } from "./responses-server.js";

export interface AskOptions extends Partial<Omit<ModelClientOptions, "provider">> {
  provider?: Partial<ModelProvider>;
  request?: Partial<ModelRequest>;
  signal?: AbortSignal;
  /** How often the same client is asked. Default: once. */
  times?: number;
}

/** Asks an endpoint that answers with these replies, and tells what came of it and what it was sent. */
export async function ask(replies: readonly Reply[], options: AskOptions = {}) {
  await using server = await startResponsesServer(replies);
  const { provider, request, signal, times = 1, ...more } = options;
  const delays: number[] = [];
  const client = createModelClient({
    provider: localProvider(server.url, {
      credentials: bearerKey("secret-key"),
      maxRequestRetries: 4,
      maxStreamRetries: 5,
      ...provider,
    }),
    model: "gpt-5-test",
    threadId: "thread-1",
    random: () => 0.5,
    sleep: (ms) => {
      delays.push(ms);
      return Promise.resolve();
    },
    ...more,
  });
  const asked = {
    instructions: "be brief",
    input: [textMessage("user", "hello")],
    tools: [shell],
    ...request,
  };
  const events: ModelEvent[] = [];
  let error: unknown;
  try {
    for (let time = 0; time < times; time++)
      for await (const event of client.stream(asked, signal ?? new AbortController().signal))
        events.push(event);
  } catch (caught) {
    error = caught;
  }
  const { requests, url } = server;
  return { events, error, delays, requests, url, connections: server.connectionCount() };
}

export const shell = {
  type: "function",
  name: "shell",
  description: "Runs a command.",
  strict: false,
  parameters: { type: "object", properties: { command: { type: "array", items: { type: "string" } } } },
};

/** The items of a response, without the ids that only some endpoints get back. */
export function itemsOf(events: readonly ModelEvent[]) {
  return events.flatMap((event) => (event.kind === "item" ? [event.item] : []));
}

export function kindsOf(events: readonly ModelEvent[]): string[] {
  return events.map(({ kind }) => kind);
}

export function describeFailure(error: unknown) {
  if (!isBrigError(error)) return error;
  return { code: error.code, kind: error.cause instanceof ModelFailure ? error.cause.kind : undefined };
}
