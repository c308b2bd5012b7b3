import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** What the server answers to one request. */
export type Reply =
  | {
      kind: "stream";
      events: readonly (object | string)[];
      /** Writes the stream in pieces of so many bytes. Default: all at once. */
      pieceBytes?: number;
      /** Breaks the connection after so many bytes. */
      cutAfterBytes?: number;
      /** What follows the events. Default: the response ends. */
      ending?: "end" | "hang" | "break";
      /** Waits before the first byte. */
      delayMs?: number;
    }
  | { kind: "status"; status: number; headers?: Record<string, string>; body?: object | string }
  | { kind: "hang-up" };

interface ReceivedRequest {
  url: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown> & { input: Record<string, unknown>[] };
}

/** An endpoint on loopback that answers the nth request with the nth reply, and the last one from then on. */
export async function startResponsesServer(replies: readonly Reply[]) {
  const requests: ReceivedRequest[] = [];
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      requests.push({ url: request.url ?? "", headers: request.headers, body: JSON.parse(body) });
      await answer(response, replies[Math.min(requests.length, replies.length) - 1]);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(response: ServerResponse, reply: Reply | undefined): Promise<void> {
  if (reply === undefined || reply.kind === "hang-up") {
    response.destroy();
    return;
  }
  if (reply.kind === "status") {
    const body = typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body ?? {});
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers }).end(body);
    return;
  }
  await new Promise((resolve) => setTimeout(resolve, reply.delayMs ?? 0));
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  const bytes = Buffer.from(reply.events.map(frame).join(""));
  const end = reply.cutAfterBytes ?? bytes.length;
  const step = reply.pieceBytes ?? bytes.length;
  for (let at = 0; at < end; at += step) {
    response.write(bytes.subarray(at, Math.min(at + step, end)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (reply.cutAfterBytes !== undefined || reply.ending === "break") response.destroy();
  else if (reply.ending !== "hang") response.end();
}

function frame(event: object | string): string {
  if (typeof event === "string") return event;
  const name = "type" in event ? `event: ${String(event.type)}\n` : "";
  return `${name}data: ${JSON.stringify(event)}\n\n`;
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
