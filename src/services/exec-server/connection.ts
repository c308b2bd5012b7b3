import { z } from "zod";
import { BrigError } from "../../errors.js";
import { Gate } from "../../lib/time/gate.js";
import { environmentConfig, environmentInfo } from "./environment-info.js";
import type { Session } from "./session.js";
import type { SessionList } from "./session-list.js";
import { fileUri } from "./wire/file-uri.js";
import {
  checkedParams,
  invalidRequest,
  NO_REQUEST,
  parseMessage,
  type RequestId,
  RpcError,
  RpcErrorCode,
  type RpcRequest,
} from "./wire/messages.js";

/** The longest message: a file of 32 MiB in base64 fits. */
export const MAX_MESSAGE_BYTES = 48 * 1024 * 1024;
/** Requests beyond this number of unanswered ones are refused. An ordinary client never has so many. */
const MAX_UNANSWERED = 512;
const MAX_UNANSWERED_BYTES = 256 * 1024 * 1024;
/** Further refusals are not sent until the client reads. */
const MAX_UNREAD_REFUSALS_BYTES = 1024 * 1024;
/**
 * The methods whose answers hold a file or a whole directory in memory. `MAX_LARGE_REQUESTS` of them run at a time,
 * and one runs until the client has taken its answer.
 */
const LARGE_REQUESTS: ReadonlySet<string> = new Set([
  "fs/readFile",
  "fs/readBlock",
  "fs/readDirectory",
  "fs/walk",
  "fs/copy",
]);
const MAX_LARGE_REQUESTS = 4;

/** Sends one message; resolves when the client has room for the next one. */
export type SendText = (text: string) => Promise<void>;

const initializeParams = z.looseObject({
  clientName: z.string(),
  resumeSessionId: z.string().nullish(),
});
const configParams = z.looseObject({ cwd: fileUri.nullish() });

type Method = (session: Session, params: unknown, sessions: SessionList) => Promise<object>;

const methods: Readonly<Record<string, Method>> = {
  "process/start": (session, params) => session.processes.start(params),
  "process/read": (session, params) => session.processes.read(params),
  "process/write": (session, params) => session.processes.write(params),
  "process/resize": (session, params) => session.processes.resize(params),
  "process/signal": (session, params) => session.processes.signal(params),
  "process/terminate": (session, params) => session.processes.terminate(params),
  "fs/readFile": (session, params) => session.files.readFile(params),
  "fs/writeFile": (session, params) => session.files.writeFile(params),
  "fs/createDirectory": (session, params) => session.files.createDirectory(params),
  "fs/getMetadata": (session, params) => session.files.getMetadata(params),
  "fs/canonicalize": (session, params) => session.files.canonicalize(params),
  "fs/readDirectory": (session, params) => session.files.readDirectory(params),
  "fs/remove": (session, params) => session.files.remove(params),
  "fs/copy": (session, params) => session.files.copy(params),
  "fs/walk": (session, params) => session.files.walk(params),
  "fs/watchMissing": (session, params) => session.files.watchMissing(params),
  "fs/open": (session, params) => session.handles.open(params),
  "fs/readBlock": (session, params) => session.handles.readBlock(params),
  "fs/writeBlock": (session, params) => session.handles.writeBlock(params),
  "fs/close": (session, params) => session.handles.close(params),
  "environment/info": (session, _, sessions) => environmentOf(session, sessions),
  "environment/status": async () => ({ status: "ready" }),
  "http/request": () => {
    throw invalidRequest(
      "brig's exec-server makes no HTTP requests: they would leave from this machine and not from a sandbox. " +
        "Take environment_id out of this MCP server's table in config.toml, and Codex makes them itself",
    );
  },
  "environmentConfig/read": async (session, params) => {
    const { cwd } = checkedParams(configParams, params);
    if (cwd !== null && cwd !== undefined) session.workspaces.name(cwd);
    return environmentConfig();
  },
};

/** One client. Every request gets exactly one answer, as long as the client is there. */
export class Connection {
  readonly #sessions: SessionList;
  readonly #send: SendText;
  #session: Session | undefined;
  #isClosed = false;
  #unanswered = 0;
  #unansweredBytes = 0;
  #unreadRefusalBytes = 0;
  readonly #largeRequests = new Gate();

  constructor(sessions: SessionList, send: SendText) {
    this.#sessions = sessions;
    this.#send = send;
  }

  /**
   * Takes one message and returns before it is answered. A write to a process that reads no input waits as
   * long as the process lives, and meanwhile the client must be able to end that process.
   */
  receive(text: string): void {
    if (this.#isClosed) return;
    const message = parseMessage(text);
    if (message.kind === "request") this.#take(message, text.length);
    else if (message.kind === "invalid") this.refuse(message.reason, message.id);
    else if (message.method !== "initialized")
      this.refuse(`unknown notification ${message.method.slice(0, 200)}`);
  }

  /**
   * Answers that a message was refused. Does not wait until the client reads this: the server must see the end of its
   * input even if the client reads nothing. A client that leaves too many refusals unread gets no more of them.
   */
  refuse(reason: string, id: RequestId = NO_REQUEST): void {
    if (this.#unreadRefusalBytes >= MAX_UNREAD_REFUSALS_BYTES) return;
    const refusal = { error: { code: RpcErrorCode.invalidRequest, message: reason }, id };
    const { length } = JSON.stringify(refusal);
    this.#unreadRefusalBytes += length;
    void this.#write(refusal).finally(() => {
      this.#unreadRefusalBytes -= length;
    });
  }

  /** Call this when the client has gone. Nothing is sent to it any more. */
  close(): void {
    this.#isClosed = true;
    if (this.#session !== undefined) this.#sessions.detach(this.#session);
  }

  #take(request: RpcRequest, length: number): void {
    const reason = request.method === "process/terminate" ? null : this.#whyTooMuch(length);
    if (reason !== null) {
      this.refuse(reason, request.id);
      return;
    }
    this.#unanswered += 1;
    this.#unansweredBytes += length;
    void this.#answerInTurn(request).finally(() => {
      this.#unanswered -= 1;
      this.#unansweredBytes -= length;
    });
  }

  #whyTooMuch(length: number): string | null {
    if (this.#unanswered >= MAX_UNANSWERED)
      return `${MAX_UNANSWERED} requests wait for their answers already`;
    return this.#unansweredBytes + length > MAX_UNANSWERED_BYTES
      ? `requests of more than ${MAX_UNANSWERED_BYTES} bytes would wait for their answers`
      : null;
  }

  async #answerInTurn(request: RpcRequest): Promise<void> {
    if (!LARGE_REQUESTS.has(request.method)) return await this.#answer(request);
    await this.#largeRequests.pass(async () => await this.#answer(request), { width: MAX_LARGE_REQUESTS });
  }

  async #answer({ id, method, params }: RpcRequest): Promise<void> {
    try {
      const result = await (method === "initialize" ? this.#initialize(params) : this.#call(method, params));
      await this.#write({ id, result });
    } catch (error) {
      await this.#write({ error: describe(error), id });
    }
  }

  async #initialize(params: unknown): Promise<object> {
    if (this.#session !== undefined) throw invalidRequest("initialize may only be sent once per connection");
    const { resumeSessionId } = checkedParams(initializeParams, params);
    this.#session = this.#sessions.attach(resumeSessionId ?? null, (name, values) =>
      this.#write({ method: name, params: values }),
    );
    return {
      sessionId: this.#session.id,
      environmentInfo: await environmentOf(this.#session, this.#sessions),
    };
  }

  async #call(method: string, params: unknown): Promise<object> {
    const call = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (call === undefined)
      throw new RpcError(`brig's exec-server has no method ${JSON.stringify(method.slice(0, 200))}`, {
        code: RpcErrorCode.unknownMethod,
      });
    if (this.#session === undefined) throw invalidRequest(`client must call initialize before ${method}`);
    return await call(this.#session, params, this.#sessions);
  }

  async #write(message: object): Promise<void> {
    if (!this.#isClosed) await this.#send(JSON.stringify(message));
  }
}

async function environmentOf(session: Session, sessions: SessionList): Promise<object> {
  return environmentInfo({ directory: sessions.directory, shell: await sessions.shell(session) });
}

function describe(error: unknown): { code: number; message: string } {
  if (error instanceof RpcError) return { code: error.code, message: error.message };
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof BrigError && error.hint !== undefined ? ` (${error.hint})` : "";
  return { code: RpcErrorCode.internal, message: message + hint };
}
