import { EventEmitter, once } from "node:events";
import { PassThrough } from "node:stream";
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { type HttpService, serveMcpHttp } from "../../src/services/mcp-server/serve-http.js";
import { serveMcpStdio } from "../../src/services/mcp-server/serve-stdio.js";
import type { OpenClient } from "../../src/services/mcp-server/served-client.js";

/** What happened to the clients of a test service, in order. */
export type ServiceEvent = "open" | "open shared" | "call started" | "call aborted" | "close";

/** A service with the tools `echo`, which answers, and `wait`, which answers only when it is cancelled. */
export class TestService {
  readonly events: ServiceEvent[] = [];
  /** Functions that run before the next clients end, one for each client. */
  readonly ends: (() => Promise<unknown>)[] = [];
  readonly #changes = new EventEmitter();

  readonly openClient: OpenClient = ({ isShared }) => {
    this.#happened(isShared ? "open shared" : "open");
    return {
      createServer: () => this.#createServer(),
      close: async () => {
        const end = this.ends.shift();
        try {
          if (end !== undefined) await end();
        } finally {
          this.#happened("close");
        }
      },
    };
  };

  /** Resolves when something has happened so many times. */
  async until(event: ServiceEvent, times = 1): Promise<void> {
    while (this.events.filter((one) => one === event).length < times) await once(this.#changes, "event");
  }

  #createServer(): McpServer {
    const server = new McpServer({ name: "test", version: "1" });
    const inputSchema = fromJsonSchema<{ text?: string }>({
      type: "object",
      properties: { text: { type: "string" } },
    });
    server.registerTool("echo", { inputSchema }, ({ text = "" }) => ({ content: [{ type: "text", text }] }));
    server.registerTool("wait", { inputSchema }, async (_, { mcpReq: { signal } }) => {
      this.#happened("call started");
      if (!signal.aborted) await once(signal, "abort");
      this.#happened("call aborted");
      return { content: [] };
    });
    return server;
  }

  #happened(event: ServiceEvent): void {
    this.events.push(event);
    this.#changes.emit("event");
  }
}

/** A service over streams, whose client a test plays. */
export function openStdioService(service = new TestService()) {
  const input = new PassThrough();
  const output = new PassThrough();
  const stop = new AbortController();
  const ended = serveMcpStdio({ input, output, openClient: service.openClient, signal: stop.signal });
  ended.catch(() => undefined);
  const lines = linesOf(output);
  return {
    service,
    input,
    output,
    stop,
    ended,
    send: (message: unknown) => input.write(`${JSON.stringify(message)}\n`),
    /** The next message of the server. */
    async next(): Promise<Record<string, unknown>> {
      const { value } = await lines.next();
      return JSON.parse(value);
    },
  };
}

/** A service over HTTP on loopback. */
export async function openHttpService(limits: HttpService["limits"] = {}) {
  const service = new TestService();
  const stop = new AbortController();
  const token = "0123456789abcdef0123456789abcdef";
  let ended: Promise<never> = Promise.reject();
  ended.catch(() => undefined);
  const url = await new Promise<string>((resolve, reject) => {
    ended = serveMcpHttp({
      port: 0,
      token,
      openClient: service.openClient,
      signal: stop.signal,
      onListening: resolve,
      limits,
    });
    ended.catch(reject);
  });
  return {
    service,
    url,
    token,
    stop,
    ended,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("stopped"));
      await ended.catch(() => undefined);
    },
  };
}

export const initialize = {
  jsonrpc: "2.0",
  id: "init",
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "test", version: "1" },
  },
} as const;

async function* linesOf(stream: PassThrough): AsyncGenerator<string, never> {
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  throw new Error("the server has ended its output");
}
