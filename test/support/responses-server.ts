import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { ModelProvider } from "../../src/agent/model/provider.js";
import { noCredentials } from "../../src/agent/model/static-credentials.js";

/** A provider of that address which needs no key and waits for nothing. */
export function localProvider(url: string, more: Partial<ModelProvider> = {}): ModelProvider {
  return {
    id: "local",
    wireApi: "responses",
    baseUrl: url,
    credentials: noCredentials,
    headers: {},
    query: {},
    maxRequestRetries: 0,
    maxStreamRetries: 0,
    // A test process that starts many programs at once may not come to reading an answer for seconds.
    streamIdleTimeoutMs: 60_000,
    ...more,
  };
}

/** What goes wrong with a stream. */
interface StreamFaults {
  /** Writes the stream in pieces of so many bytes. Default: all at once. */
  pieceBytes?: number;
  /** Breaks the connection after so many bytes. */
  cutAfterBytes?: number;
  /** What follows the events. Default: the response ends. */
  ending?: "end" | "hang" | "break";
  /** With `hang`: goes on to send this, so many milliseconds apart; 0 sends it as fast as it is read. */
  thenRepeats?: { text: string; everyMs: number };
  /** Waits before the first byte. */
  delayMs?: number;
  /** Default: text/event-stream. */
  contentType?: string;
  /** Compresses the stream, and says so. */
  encoding?: "gzip" | "deflate" | "br" | "gzip, br" | "zstd";
}

/** What the server answers to one request. Events that are bytes are sent as they are. */
export type Reply =
  | ({ kind: "stream"; events: readonly (object | string)[] } & StreamFaults)
  /** A response in the words of whichever wire the request came over. */
  | ({ kind: "turn"; turn: ScriptedTurn } & StreamFaults)
  | {
      kind: "status";
      status: number;
      headers?: Record<string, string>;
      body?: object | string;
      /** Never ends the body. */
      hangs?: boolean;
    }
  | { kind: "hang-up" };

export interface ReceivedRequest {
  url: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown> & {
    input: Record<string, unknown>[];
    messages: Record<string, unknown>[];
  };
}

/** An endpoint on loopback that answers the nth request with the nth reply, and the last one from then on, or as it is asked. */
export async function startResponsesServer(
  replies: readonly Reply[] | ((request: ReceivedRequest) => Reply),
) {
  const requests: ReceivedRequest[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const url = request.url ?? "";
      const received = { url, headers: request.headers, body: body === "" ? {} : JSON.parse(body) };
      requests.push(received);
      const reply =
        typeof replies === "function"
          ? replies(received)
          : replies[Math.min(requests.length, replies.length) - 1];
      await answer(response, reply?.kind === "turn" ? spelledOut(reply, url) : reply);
    });
  });
  server.on("connection", () => {
    connections++;
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    /** How many there have been. */
    connectionCount: () => connections,
    openConnections: () =>
      new Promise<number>((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type PlainReply = Exclude<Reply, { kind: "turn" }>;

function spelledOut({ turn, ...reply }: Reply & { kind: "turn" }, url: string): PlainReply {
  const isChat = new URL(url, "http://localhost").pathname.endsWith("/chat/completions");
  return { ...reply, kind: "stream", events: isChat ? chatEvents(turn) : responsesEvents(turn) };
}

async function answer(response: ServerResponse, reply: PlainReply | undefined): Promise<void> {
  if (reply === undefined || reply.kind === "hang-up") {
    response.destroy();
    return;
  }
  if (reply.kind === "status") {
    const body = typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body ?? {});
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
    if (reply.hangs === true) response.write(body);
    else response.end(body);
    return;
  }
  // An answer that nobody waits for any more keeps no process alive.
  await new Promise((resolve) => setTimeout(resolve, reply.delayMs ?? 0).unref());
  const encoded = reply.encoding === undefined ? {} : { "content-encoding": reply.encoding };
  response.writeHead(200, { "content-type": reply.contentType ?? "text/event-stream", ...encoded });
  response.flushHeaders();
  const plain = Buffer.concat(
    reply.events.map((event) => (event instanceof Uint8Array ? event : Buffer.from(frame(event)))),
  );
  const bytes = (reply.encoding ?? "").split(", ").reduce<Buffer>(compress, plain);
  const end = reply.cutAfterBytes ?? bytes.length;
  const step = reply.pieceBytes ?? bytes.length;
  for (let at = 0; at < end; at += step) {
    response.write(bytes.subarray(at, Math.min(at + step, end)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (reply.cutAfterBytes !== undefined || reply.ending === "break") response.destroy();
  else if (reply.ending !== "hang") response.end();
  else if (reply.thenRepeats !== undefined) void repeat(response, reply.thenRepeats);
}

function compress(bytes: Buffer, encoding: string): Buffer {
  if (encoding === "gzip") return gzipSync(bytes);
  if (encoding === "deflate") return deflateSync(bytes);
  return encoding === "br" ? brotliCompressSync(bytes) : bytes;
}

async function repeat(response: ServerResponse, { text, everyMs }: { text: string; everyMs: number }) {
  while (!response.destroyed) {
    if (!response.write(text)) await drainedOrClosed(response);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

async function drainedOrClosed(response: ServerResponse): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  await Promise.race([once(response, "drain", { signal }), once(response, "close", { signal })]);
  // Takes the other listener away: thousands of rounds would leave as many.
  over.abort();
}

/** An event as it is on the wire. A text is that already. */
export function frame(event: object | string): string {
  if (typeof event === "string") return event;
  const name = "type" in event ? `event: ${String(event.type)}\n` : "";
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

/** What a model says and calls, for either wire. */
export interface ScriptedTurn {
  reasoning?: string;
  text?: string;
  calls?: readonly { id: string; name: string; args: object }[];
}

/** A response over whichever wire is asked for. */
export function turn(turn: ScriptedTurn, faults: StreamFaults = {}): Reply {
  return { kind: "turn", turn, ...faults };
}

/** Everything in small deltas. */
export function responsesEvents({ reasoning, text, calls = [] }: ScriptedTurn): object[] {
  return [
    created(),
    ...(reasoning === undefined ? [] : [reasoningDone(reasoning, "gAAA")]),
    ...(text === undefined ? [] : [...inPieces(text).map(textDelta), messageDone(text)]),
    ...calls.flatMap(({ id, name, args }) => [
      ...inPieces(JSON.stringify(args)).map((delta) => ({
        type: "response.function_call_arguments.delta",
        delta,
      })),
      callDone(id, name, args),
    ]),
    completed(),
  ];
}

export const chatDone = "data: [DONE]\n\n";

/** Everything in small deltas, the way OpenAI does it. */
export function chatEvents({ reasoning, text, calls = [] }: ScriptedTurn): (object | string)[] {
  return [
    chatDelta({ role: "assistant", content: "" }),
    ...inPieces(reasoning ?? "").map((piece) => chatDelta({ reasoning: piece })),
    ...inPieces(text ?? "").map((content) => chatDelta({ content })),
    ...calls.flatMap(({ id, name, args }, index) => [
      chatDelta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
      ...inPieces(JSON.stringify(args)).map((piece) =>
        chatDelta({ tool_calls: [{ index, function: { arguments: piece } }] }),
      ),
    ]),
    chatFinish(calls.length > 0 ? "tool_calls" : "stop"),
    chatUsage(),
    chatDone,
  ];
}

export function chatDelta(delta: object): object {
  return { id: "chatcmpl-1", object: "chat.completion.chunk", choices: [{ index: 0, delta }] };
}

export function chatFinish(reason: string): object {
  return { id: "chatcmpl-1", choices: [{ index: 0, delta: {}, finish_reason: reason }] };
}

export function chatUsage(): object {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    prompt_tokens_details: { cached_tokens: 40 },
    completion_tokens_details: { reasoning_tokens: 5 },
  };
  return { id: "chatcmpl-1", choices: [], usage };
}

function inPieces(text: string): string[] {
  return text.match(/.{1,3}/gsu) ?? [];
}

export function created(): object {
  return { type: "response.created", response: { id: "resp_1" } };
}

export function completed(usage: object = sampleUsage): object {
  return { type: "response.completed", response: { id: "resp_1", usage } };
}

export function textDelta(delta: string): object {
  return { type: "response.output_text.delta", delta };
}

export function messageDone(content: string): object {
  return {
    type: "response.output_item.done",
    item: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: content, annotations: [] }],
    },
  };
}

export function reasoningDone(summary: string, encrypted: string): object {
  return {
    type: "response.output_item.done",
    item: {
      id: "rs_1",
      type: "reasoning",
      summary: [{ type: "summary_text", text: summary }],
      encrypted_content: encrypted,
    },
  };
}

export function callDone(callId: string, name: string, args: unknown): object {
  return {
    type: "response.output_item.done",
    item: {
      id: `fc_${callId}`,
      type: "function_call",
      status: "completed",
      call_id: callId,
      name,
      arguments: typeof args === "string" ? args : JSON.stringify(args),
    },
  };
}

export function customCallDone(callId: string, name: string, input: string): object {
  return {
    type: "response.output_item.done",
    item: {
      id: `ctc_${callId}`,
      type: "custom_tool_call",
      status: "completed",
      call_id: callId,
      name,
      input,
    },
  };
}

/** `callId` null leaves it out, as some endpoints do; the item's own id then names the call. */
export function localShellCallDone(callId: string | null, action: object): object {
  const id = { id: "lsh_1", ...(callId === null ? {} : { call_id: callId }) };
  return {
    type: "response.output_item.done",
    item: { ...id, type: "local_shell_call", status: "completed", action: { type: "exec", ...action } },
  };
}

const sampleUsage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 40 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 120,
};

/** A response with these items. */
export function respond(...items: readonly object[]): Reply {
  return { kind: "stream", events: [created(), ...items, completed()] };
}
