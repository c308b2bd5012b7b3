import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { expectExact, schema } from "./acp-schema.js";
import { type BrigOptions, brig } from "./cli.js";
import { brigHere, type RunningHere } from "./cli-here.js";

export interface AcpClientOptions {
  cwd: string;
  home: string;
  args?: readonly string[];
  env?: Record<string, string>;
  /** `brig acp` runs as a process of its own, and not in that of the test. Default: false. */
  isProcess?: boolean;
  capabilities?: acp.ClientCapabilities;
  /** The option that is chosen, or the whole answer. Default: the first option. */
  onPermission?: (request: acp.RequestPermissionRequest) => unknown;
  onElicitation?: (request: acp.CreateElicitationRequest) => unknown;
}

/** The SDK's schema for the answer to each request. */
const answers: Record<string, { parse(value: unknown): unknown }> = {
  initialize: schema.zInitializeResponse,
  authenticate: schema.zAuthenticateResponse,
  "session/new": schema.zNewSessionResponse,
  "session/load": schema.zLoadSessionResponse,
  "session/resume": schema.zResumeSessionResponse,
  "session/list": schema.zListSessionsResponse,
  "session/close": schema.zCloseSessionResponse,
  "session/delete": schema.zDeleteSessionResponse,
  "session/prompt": schema.zPromptResponse,
  "session/set_mode": schema.zSetSessionModeResponse,
  "session/set_config_option": schema.zSetSessionConfigOptionResponse,
};

/** A client of `brig acp`, made with the official SDK. Everything that brig sends is checked by the SDK's schemas. */
export class AcpClient implements AsyncDisposable {
  readonly server: ReturnType<typeof brig> | RunningHere;
  readonly agent: acp.ClientContext;
  readonly updates: { sessionId: string; update: acp.SessionUpdate }[] = [];
  readonly permissions: acp.RequestPermissionRequest[] = [];
  readonly elicitations: acp.CreateElicitationRequest[] = [];
  /** Questions that brig has withdrawn. */
  readonly withdrawn: unknown[] = [];
  /** What brig sent that the schemas do not allow. */
  readonly problems: string[] = [];
  /** Answers with the id null. */
  readonly strays: acp.ErrorResponse[] = [];
  readonly #connection: acp.ClientConnection;
  readonly #methods = new Map<unknown, string>();
  readonly #listeners = new Set<() => void>();

  constructor(options: AcpClientOptions) {
    const { cwd, home, args = [], env = {}, isProcess = false, onPermission, onElicitation } = options;
    const surroundings: BrigOptions = {
      cwd,
      holdsInputOpen: true,
      env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "", ...env },
    };
    this.server = (isProcess ? brig : brigHere)(["acp", ...args], surroundings);
    const { stdin, stdout } = this.server;
    if (stdout === null) throw new Error("brig has no standard output");
    stdin.on("error", () => undefined);
    this.#connection = acp
      .client({ name: "test" })
      .onRequest("session/request_permission", async ({ params }) => {
        this.permissions.push(params);
        this.#notify();
        const answer = onPermission?.(params) ?? params.options[0]?.optionId;
        return (
          typeof answer === "string" ? { outcome: { outcome: "selected", optionId: answer } } : await answer
        ) as acp.RequestPermissionResponse;
      })
      .onRequest("elicitation/create", async ({ params }) => {
        this.elicitations.push(params);
        this.#notify();
        return (await (onElicitation?.(params) ?? { action: "cancel" })) as acp.CreateElicitationResponse;
      })
      .onNotification("session/update", ({ params }) => {
        this.updates.push(params);
        this.#notify();
      })
      .connect(this.#observed(acp.ndJsonStream(Writable.toWeb(stdin), readableOf(stdout))));
    this.agent = this.#connection.agent;
  }

  /** A client that has said what it can do. */
  static async start(options: AcpClientOptions): Promise<AcpClient> {
    const client = new AcpClient(options);
    await client.agent.request("initialize", {
      protocolVersion: 1,
      clientCapabilities: options.capabilities ?? {},
      clientInfo: { name: "test", version: "1" },
    });
    return client;
  }

  async open(cwd: string, more: Partial<acp.NewSessionRequest> = {}): Promise<string> {
    return (await this.agent.request("session/new", { cwd, mcpServers: [], ...more })).sessionId;
  }

  async prompt(sessionId: string, prompt: string | acp.ContentBlock[]): Promise<acp.StopReason> {
    const blocks = typeof prompt === "string" ? [{ type: "text" as const, text: prompt }] : prompt;
    return (await this.agent.request("session/prompt", { sessionId, prompt: blocks })).stopReason;
  }

  /** The error of a request that fails. */
  async refusal(method: string, params: unknown): Promise<{ code: number; message: string }> {
    try {
      await this.agent.request(method, params);
    } catch (error) {
      if (error instanceof acp.RequestError) return { code: error.code, message: error.message };
      throw error;
    }
    throw new Error(`${method} was not refused`);
  }

  /** Resolves when the text has been read. */
  async sendText(text: string): Promise<void> {
    await new Promise<void>((resolve) => {
      this.server.stdin.write(text, () => resolve());
    });
  }

  /** Everything that the agent has said, or with `user_message_chunk`, that the person has said. */
  text(
    kind: "agent_message_chunk" | "user_message_chunk" | "agent_thought_chunk" = "agent_message_chunk",
  ): string {
    return this.updates
      .flatMap(({ update }) =>
        update.sessionUpdate === kind && update.content.type === "text" ? [update.content.text] : [],
      )
      .join("");
  }

  of<Kind extends acp.SessionUpdate["sessionUpdate"]>(
    kind: Kind,
  ): Extract<acp.SessionUpdate, { sessionUpdate: Kind }>[] {
    return this.updates.flatMap(({ update }) =>
      update.sessionUpdate === kind ? [update as Extract<acp.SessionUpdate, { sessionUpdate: Kind }>] : [],
    );
  }

  /** Resolves when the condition is true; it is checked at each message from brig. */
  async until(isEnough: () => boolean): Promise<void> {
    while (!isEnough())
      await new Promise<void>((resolve) => {
        const listener = () => {
          this.#listeners.delete(listener);
          resolve();
        };
        this.#listeners.add(listener);
      });
  }

  /** Disconnects, and throws if brig has sent something that the schemas do not allow. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.server.stdin.end();
    await this.server;
    if (this.problems.length > 0) throw new Error(this.problems.join("\n"));
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #observed(stream: acp.Stream): acp.Stream {
    const writer = stream.writable.getWriter();
    return {
      readable: stream.readable.pipeThrough(
        new TransformStream<acp.AnyMessage, acp.AnyMessage>({
          transform: (message, controller) => {
            this.#check(message);
            controller.enqueue(message);
          },
        }),
      ),
      writable: new WritableStream<acp.AnyMessage>({
        write: async (message) => {
          if ("method" in message && "id" in message) this.#methods.set(message.id, message.method);
          await writer.write(message);
        },
      }),
    };
  }

  #check(message: acp.AnyMessage): void {
    try {
      if ("method" in message && message.method === "session/update")
        expectExact(schema.zSessionNotification, message.params);
      else if ("method" in message && message.method === "session/request_permission")
        expectExact(schema.zRequestPermissionRequest, message.params);
      else if ("method" in message && message.method === "elicitation/create")
        schema.zCreateElicitationRequest.parse(message.params);
      else if ("method" in message && message.method === "$/cancel_request")
        this.withdrawn.push(message.params);
      else if ("method" in message) throw new Error(`unexpected method ${message.method}`);
      else if ("error" in message) {
        schema.zError.parse(message.error);
        if (message.id === null) this.strays.push(message.error);
      } else {
        const method = this.#methods.get(message.id) ?? "";
        const type = answers[method];
        if (type === undefined) throw new Error(`an answer to nothing: ${JSON.stringify(message)}`);
        expectExact(type, message.result);
      }
    } catch (error) {
      this.problems.push(String(error));
    }
    this.#notify();
  }
}

function readableOf(stdout: NodeJS.ReadableStream): ReadableStream<Uint8Array> {
  return Readable.toWeb(stdout as Readable) as unknown as ReadableStream<Uint8Array>;
}
