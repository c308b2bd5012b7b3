import { z } from "zod";
import { BrigError } from "../errors.js";
import { environmentConfig, environmentInfo } from "./environment-info.js";
import type { Session } from "./session.js";
import type { SessionList } from "./session-list.js";
import { fileUri } from "./wire/file-uri.js";
import {
  checkedParams,
  NO_REQUEST,
  parseMessage,
  type RequestId,
  RpcError,
  RpcErrorCode,
  type RpcRequest,
} from "./wire/messages.js";

/** The longest message: a file of 32 MiB in base64 fits. */
export const MAX_MESSAGE_BYTES = 48 * 1024 * 1024;
/** More unanswered requests than any client has. */
const MAX_UNANSWERED = 512;

/** Sends one message; resolves when the client has room for the next one. */
export type SendText = (text: string) => Promise<void>;

const initializeParams = z.looseObject({
  clientName: z.string(),
  resumeSessionId: z.string().nullish(),
});
const configParams = z.looseObject({ cwd: fileUri.nullish() });

type Method = (session: Session, params: unknown) => Promise<object>;

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

  constructor(sessions: SessionList, send: SendText) {
    this.#sessions = sessions;
    this.#send = send;
  }

  /**
   * Takes one message. Resolves when the next one may come, which never depends on the answer to an earlier one: a
   * request can take as long as a process does that reads no input, and the next message may be what ends it.
   */
  async receive(text: string): Promise<void> {
    const message = parseMessage(text);
    if (message.kind === "invalid") return await this.refuse(message.reason, message.id);
    if (message.kind === "notification") {
      if (message.method !== "initialized") await this.refuse(`unknown notification ${message.method}`);
      return;
    }
    if (this.#unanswered >= MAX_UNANSWERED && message.method !== "process/terminate")
      return await this.refuse(`${MAX_UNANSWERED} requests wait for their answers already`, message.id);
    this.#unanswered += 1;
    void this.#answer(message).finally(() => {
      this.#unanswered -= 1;
    });
  }

  /** Says that a message was not understood. */
  async refuse(reason: string, id: RequestId = NO_REQUEST): Promise<void> {
    await this.#write({ error: { code: RpcErrorCode.invalidRequest, message: reason }, id });
  }

  /** The client has gone: nothing is sent any more. */
  close(): void {
    this.#isClosed = true;
    if (this.#session !== undefined) this.#sessions.detach(this.#session);
  }

  async #answer({ id, method, params }: RpcRequest): Promise<void> {
    try {
      const result = method === "initialize" ? this.#initialize(params) : await this.#call(method, params);
      await this.#write({ id, result });
    } catch (error) {
      await this.#write({ error: describe(error), id });
    }
  }

  #initialize(params: unknown): object {
    if (this.#session !== undefined)
      throw new RpcError("initialize may only be sent once per connection", {
        code: RpcErrorCode.invalidRequest,
      });
    const { resumeSessionId } = checkedParams(initializeParams, params);
    this.#session = this.#sessions.attach(resumeSessionId ?? null, (name, values) =>
      this.#write({ method: name, params: values }),
    );
    return { sessionId: this.#session.id, environmentInfo: environmentInfo(this.#sessions.directory) };
  }

  async #call(method: string, params: unknown): Promise<object> {
    const call = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (call === undefined)
      throw new RpcError(`brig's exec-server has no method ${JSON.stringify(method.slice(0, 200))}`, {
        code: RpcErrorCode.unknownMethod,
      });
    if (this.#session === undefined)
      throw new RpcError(`client must call initialize before ${method}`, {
        code: RpcErrorCode.invalidRequest,
      });
    return await call(this.#session, params);
  }

  async #write(message: object): Promise<void> {
    if (!this.#isClosed) await this.#send(JSON.stringify(message));
  }
}

function describe(error: unknown): { code: number; message: string } {
  if (error instanceof RpcError) return { code: error.code, message: error.message };
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof BrigError && error.hint !== undefined ? ` (${error.hint})` : "";
  return { code: RpcErrorCode.internal, message: message + hint };
}
