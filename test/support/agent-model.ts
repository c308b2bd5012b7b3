import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { frame } from "./responses-server.js";
import { tlsServer } from "./tls-server.js";

/** What a scripted model answers: a call of a tool, or its last words. */
export interface ModelTurn {
  text?: string;
  call?: { id?: string; name: string; args: object };
}

/** A request for an answer of the model. `body` is its text. */
interface ModelRequest {
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** How an agent asks its model for an answer. */
export interface ModelWire {
  /** Whether a request is one for an answer, and not for a list of models or a count of tokens. */
  asks(path: string): boolean;
  /** Server-sent events. */
  events(turn: ModelTurn): readonly (object | string)[];
  /** The answer to a request that wants no stream. */
  whole(turn: ModelTurn): object;
}

const usage = { input_tokens: 10, output_tokens: 5 };

function anthropicContent({ text, call }: ModelTurn): object[] {
  if (call !== undefined)
    return [{ type: "tool_use", id: call.id ?? "toolu_01", name: call.name, input: call.args }];
  return [{ type: "text", text }];
}

const anthropicMessage = { id: "msg_01", type: "message", role: "assistant", model: "scripted" };

/** The Messages API of Anthropic. */
export const anthropicWire: ModelWire = {
  asks: (path) => path.endsWith("/messages"),
  events: (turn) => {
    const start = { ...anthropicMessage, content: [], stop_reason: null, stop_sequence: null, usage };
    const block =
      turn.call === undefined ? { type: "text", text: "" } : { ...anthropicContent(turn)[0], input: {} };
    const delta =
      turn.call === undefined
        ? { type: "text_delta", text: turn.text }
        : { type: "input_json_delta", partial_json: JSON.stringify(turn.call.args) };
    const stop_reason = turn.call === undefined ? "end_turn" : "tool_use";
    return [
      { type: "message_start", message: start },
      { type: "content_block_start", index: 0, content_block: block },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } },
      { type: "message_stop" },
    ];
  },
  whole: (turn) => ({
    ...anthropicMessage,
    content: anthropicContent(turn),
    stop_reason: turn.call === undefined ? "end_turn" : "tool_use",
    stop_sequence: null,
    usage,
  }),
};

/** The API of Gemini. */
export const geminiWire: ModelWire = {
  asks: (path) => /:(?:streamG|g)enerateContent$/.test(path),
  events: (turn) => [geminiWire.whole(turn)],
  whole: ({ text, call }) => {
    const part = call === undefined ? { text } : { functionCall: { name: call.name, args: call.args } };
    return {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
      modelVersion: "scripted",
    };
  },
};

/**
 * A server of HTTPS that is the model of an agent, as `host.internal`. Requests with tools get the turns one after the
 * other, and then the last one again; other requests, such as those for the title of a conversation, get a word.
 */
export async function startAgentModel(wire: ModelWire, turns: readonly ModelTurn[]) {
  const { listener, ...asked } = answering(wire, turns);
  const server = await tlsServer("host.internal", listener);
  return { ...server, url: `https://host.internal:${server.port}`, ...asked };
}

/** The same without TLS, for an agent on this machine. */
export async function startPlainModel(wire: ModelWire, turns: readonly ModelTurn[]) {
  const { listener, ...asked } = answering(wire, turns);
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function answering(wire: ModelWire, turns: readonly ModelTurn[]) {
  const requests: ModelRequest[] = [];
  const others: string[] = [];
  let count = 0;
  const answer = (request: IncomingMessage, response: ServerResponse, body: string) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "https://host.internal");
    if (request.method !== "POST" || !wire.asks(pathname)) {
      others.push(`${request.method} ${pathname}`);
      response.writeHead(404, { "content-type": "application/json" }).end("{}");
      return;
    }
    const hasTools = /"tools":\s*\[\s*\{/.test(body);
    requests.push({ url: request.url ?? "", headers: request.headers, body });
    const turn = hasTools ? (turns[Math.min(count++, turns.length - 1)] ?? {}) : { text: "a word" };
    const streams = /"stream":\s*true/.test(body) || searchParams.get("alt") === "sse";
    response.writeHead(200, { "content-type": streams ? "text/event-stream" : "application/json" });
    response.end(streams ? wire.events(turn).map(frame).join("") : JSON.stringify(wire.whole(turn)));
  };
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    void textOf(request).then((body) => answer(request, response, body));
  };
  return { listener, requests, others };
}
