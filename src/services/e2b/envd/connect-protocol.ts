import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { isBrigError } from "../../../errors.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { MemoryShare } from "../../serve/http/memory-budget.js";
import { takePieces } from "../../serve/wire/take-pieces.js";

/** The codes of the Connect protocol that are used, with their statuses. */
const statusOf = {
  invalid_argument: 400,
  failed_precondition: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  already_exists: 409,
  resource_exhausted: 429,
  internal: 500,
  data_loss: 500,
  unimplemented: 501,
  unavailable: 503,
  deadline_exceeded: 504,
} as const;

export type ConnectCode = keyof typeof statusOf;

/** A failure with a code of the Connect protocol. */
export class ConnectFailure extends Error {
  readonly connectCode: ConnectCode;

  constructor(message: string, { code, cause }: { code: ConnectCode; cause?: unknown }) {
    super(message, { cause });
    this.connectCode = code;
  }
}

const codeOf: Partial<Record<string, ConnectCode>> = {
  "exec.bad-cwd": "invalid_argument",
  "exec.invalid": "invalid_argument",
  "usage.invalid": "invalid_argument",
  "file.not-directory": "invalid_argument",
  "file.is-directory": "invalid_argument",
  "file.not-regular": "invalid_argument",
  "file.symlink": "invalid_argument",
  "file.not-found": "not_found",
  "serve.unknown": "not_found",
  "file.exists": "already_exists",
  "file.not-permitted": "permission_denied",
  "file.read-only": "permission_denied",
  "file.failed": "failed_precondition",
  "file.too-large": "resource_exhausted",
  "serve.busy": "resource_exhausted",
  "sandbox.gone": "unavailable",
};

/** What a client is told. An error that is not one of brig's own stays in the service: it may quote anything. */
export function connectError(error: unknown): { code: ConnectCode; message: string; isFault: boolean } {
  if (error instanceof ConnectFailure)
    return { code: error.connectCode, message: error.message, isFault: false };
  const code = isBrigError(error) ? codeOf[error.code] : undefined;
  if (code === undefined || !isBrigError(error))
    return { code: "internal", message: "the service has a fault", isFault: true };
  const { message, hint } = error;
  return { code, message: hint === undefined ? message : `${message}; ${hint}`, isFault: false };
}

/** The longest message of a client. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Its bytes, the text, and what is made of it. */
const COPIES = 3;
const HEAD_BYTES = 5;
const COMPRESSED = 1;
const LAST = 2;

const UNARY = "application/json";
const STREAM = "application/connect+json";

/** Reads the message of a call that has one answer. Errors: failures that say what is wrong. */
export async function readMessage<Schema extends z.ZodType>(
  incoming: IncomingMessage,
  schema: Schema,
  memory: MemoryShare,
): Promise<z.output<Schema>> {
  refuseOtherEncoding(incoming.headers["content-encoding"]);
  return parsedMessage(await readBody(incoming, MAX_MESSAGE_BYTES, memory), schema);
}

/** The same for a call that has a stream of answers: one message in an envelope. */
export async function readEnvelope<Schema extends z.ZodType>(
  incoming: IncomingMessage,
  schema: Schema,
  memory: MemoryShare,
): Promise<z.output<Schema>> {
  const body = await readBody(incoming, MAX_MESSAGE_BYTES + HEAD_BYTES, memory);
  if (body.length < HEAD_BYTES || body.length !== HEAD_BYTES + body.readUInt32BE(1))
    throw new ConnectFailure("the body is not one whole message in an envelope", {
      code: "invalid_argument",
    });
  const flags = body.readUInt8(0);
  if (flags === COMPRESSED) refuseOtherEncoding("compressed");
  if (flags !== 0)
    throw new ConnectFailure(`the envelope has unknown flags: ${flags}`, { code: "invalid_argument" });
  return parsedMessage(body.subarray(HEAD_BYTES), schema);
}

function refuseOtherEncoding(encoding: string | undefined): void {
  if (encoding !== undefined && encoding !== "identity")
    throw new ConnectFailure("messages that are compressed are not supported", { code: "unimplemented" });
}

async function readBody(incoming: IncomingMessage, maxBytes: number, memory: MemoryShare): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  await takePieces(incoming, (piece) => {
    bytes += piece.length;
    if (bytes > maxBytes)
      throw new ConnectFailure(`a message may have at most ${maxBytes} bytes`, {
        code: "resource_exhausted",
      });
    memory.take(piece.length * COPIES);
    pieces.push(piece);
  });
  return Buffer.concat(pieces);
}

function parsedMessage<Schema extends z.ZodType>(bytes: Buffer, schema: Schema): z.output<Schema> {
  const value = bytes.length === 0 ? {} : parseJson(bytes.toString());
  if (value === undefined || isTooDeep(value))
    throw new ConnectFailure("the message is not JSON, or is nested too deeply", {
      code: "invalid_argument",
    });
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ConnectFailure(`the message is not valid:\n${z.prettifyError(parsed.error)}`, {
    code: "invalid_argument",
  });
}

/** Whether a call has one answer, or a stream of them. Error: a failure for what is neither in JSON. */
export function refuseOtherCodec(incoming: IncomingMessage, expected: "unary" | "stream"): void {
  const [type = ""] = `${incoming.headers["content-type"] ?? ""}`.toLowerCase().split(";", 1);
  if (type.trim() === (expected === "unary" ? UNARY : STREAM)) return;
  throw new ConnectFailure(
    `the type ${JSON.stringify(type)} is not supported here, only ${expected === "unary" ? UNARY : STREAM}`,
    { code: "unimplemented" },
  );
}

export function sendMessage(outgoing: ServerResponse, value: object): void {
  const bytes = Buffer.from(JSON.stringify(value));
  outgoing.writeHead(200, { "content-type": UNARY, "content-length": bytes.length }).end(bytes);
}

/** Answers with an error, in the form that the call's client reads. */
export function sendFailure(
  outgoing: ServerResponse,
  { code, message }: { code: ConnectCode; message: string },
  { incoming, isStream }: { incoming: IncomingMessage; isStream: boolean },
): void {
  // A client that is still sending would not read the answer.
  incoming.resume();
  const close = !incoming.complete && { connection: "close" };
  const error = { code, message };
  const bytes = isStream ? envelope({ error }, LAST) : Buffer.from(JSON.stringify(error));
  const headers = { "content-type": isStream ? STREAM : UNARY, "content-length": bytes.length, ...close };
  outgoing.writeHead(isStream ? 200 : statusOf[code], headers).end(bytes);
}

/** How long a client may leave the messages of a stream unread. */
const UNREAD_MS = 60_000;

/** The answers of a call that has several. */
export class MessageStream {
  readonly #outgoing: ServerResponse;
  readonly #signal: AbortSignal;
  #sending: Promise<void> = Promise.resolve();

  constructor(outgoing: ServerResponse, signal: AbortSignal) {
    this.#outgoing = outgoing;
    this.#signal = signal;
  }

  /** Resolves when there is room for more. Whoever reads nothing for too long is disconnected. Error: the signal's reason. */
  async send(value: object): Promise<void> {
    // A keepalive may come while another message waits.
    const sent = this.#sending.then(async () => await this.#write(envelope(value, 0)));
    this.#sending = sent.catch(() => undefined);
    await sent;
  }

  /** The end of the stream, with the error that ended it. */
  end(error?: { code: ConnectCode; message: string }): void {
    if (this.#outgoing.closed) return;
    this.#begin();
    const last = error === undefined ? {} : { error: { code: error.code, message: error.message } };
    this.#outgoing.end(envelope(last, LAST));
  }

  #begin(): void {
    if (!this.#outgoing.headersSent)
      this.#outgoing.writeHead(200, { "content-type": STREAM, "cache-control": "no-store" });
  }

  async #write(bytes: Buffer): Promise<void> {
    this.#signal.throwIfAborted();
    this.#begin();
    if (this.#outgoing.write(bytes)) return;
    const timer = setTimeout(() => this.#outgoing.destroy(), UNREAD_MS);
    try {
      await new Promise<void>((resolve) => {
        const settle = () => {
          this.#outgoing.off("drain", settle).off("close", settle);
          this.#signal.removeEventListener("abort", settle);
          resolve();
        };
        this.#outgoing.once("drain", settle).once("close", settle);
        this.#signal.addEventListener("abort", settle, { once: true });
      });
    } finally {
      clearTimeout(timer);
    }
    this.#signal.throwIfAborted();
  }
}

function envelope(value: object, flags: number): Buffer {
  const message = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** After how long the client gives up, or null. Error: a failure for what is no number. */
export function timeoutOf({ headers }: IncomingMessage): number | null {
  const text = headers["connect-timeout-ms"];
  if (text === undefined) return null;
  if (!/^\d{1,10}$/.test(`${text}`))
    throw new ConnectFailure("Connect-Timeout-Ms is not a number of milliseconds", {
      code: "invalid_argument",
    });
  return Number(text) === 0 ? null : Number(text);
}

const USUAL_KEEPALIVE_SECONDS = 90;
const LONGEST_KEEPALIVE_SECONDS = 3600;

/** Sends a message now and then, so that nothing on the way takes the connection for idle. It ends with the disposal. */
export function keepAlive(incoming: IncomingMessage, send: () => Promise<void>): Disposable {
  const asked = Number(incoming.headers["keepalive-ping-interval"]);
  const seconds = asked >= 1 ? Math.min(asked, LONGEST_KEEPALIVE_SECONDS) : USUAL_KEEPALIVE_SECONDS;
  let isSending = false;
  const timer = setInterval(() => {
    if (isSending) return;
    isSending = true;
    // A client that has gone is noticed by the stream itself.
    void send()
      .catch(() => undefined)
      .finally(() => {
        isSending = false;
      });
  }, seconds * 1000);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
