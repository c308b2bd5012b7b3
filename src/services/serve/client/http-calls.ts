import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, Agent as TlsAgent, type AgentOptions as TlsAgentOptions } from "node:https";
import { Readable } from "node:stream";
import { z } from "zod";
import { BrigError, type ErrorCode, invalidUsage } from "../../../errors.js";
import { errnoOf } from "../../../lib/errno.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { errorBodySchema } from "../wire/error-body.js";
import { type RouteName, routes } from "../wire/routes.js";
import { takePieces } from "../wire/take-pieces.js";

/** One request of the client. */
export interface ClientRequest {
  id?: string | undefined;
  process?: string | undefined;
  /** A list is a parameter that is repeated. */
  query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>> | undefined;
  headers?: Readonly<Record<string, string | undefined>> | undefined;
  /** Bytes as they are, in one piece or in several; anything else as JSON. */
  body?: unknown;
  /** Error: `file.too-large` for a longer answer. Default: any length. */
  maxBytes?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Where a service is, and how it knows the client. `brig serve` prints both. */
export interface BrigClientOptions {
  /** Such as `http://127.0.0.1:8017`, or `unix:/PATH` for a socket of this machine. */
  url: string;
  token: string;
  /** The authorities in PEM of which one has signed the certificate of the service. Default: those that Node trusts. */
  ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined;
  /** The client's own certificate and its key in PEM, where the service asks for one. */
  cert?: string | Uint8Array | undefined;
  key?: string | Uint8Array | undefined;
}

const MAX_ERROR_BYTES = 1024 * 1024;

/**
 * Sends requests to one service, on connections that are kept open. Errors of all: those that the service answers,
 * with the same codes; `serve.unreachable`; the signal's reason.
 */
export class HttpCalls {
  readonly #url: URL;
  readonly #token: string;
  readonly #socketPath: string | undefined;
  readonly #agent: Agent | TlsAgent;

  /** Error: `usage.invalid` for an address that is not one of HTTP. */
  constructor({ url, token, socketPath, ...tls }: BrigClientOptions & { socketPath?: string | undefined }) {
    const path = /^unix:(\/.+)$/.exec(url)?.[1];
    this.#url = parsedUrl(path === undefined ? url : "http://localhost");
    this.#token = token;
    this.#socketPath = socketPath ?? path;
    this.#agent =
      this.#url.protocol === "https:"
        ? new TlsAgent({ keepAlive: true, ...(tls as TlsAgentOptions) })
        : new Agent({ keepAlive: true });
  }

  async json<Schema extends z.ZodType>(
    name: RouteName,
    schema: Schema,
    request: ClientRequest = {},
  ): Promise<z.output<Schema>> {
    const parsed = schema.safeParse(parseJson((await this.bytes(name, request)).toString()));
    if (parsed.success) return parsed.data;
    throw notUnderstood(z.prettifyError(parsed.error));
  }

  async bytes(name: RouteName, request: ClientRequest = {}): Promise<Buffer> {
    const pieces: Buffer[] = [];
    await this.#answer(name, request, async (response) => {
      const { maxBytes = Number.POSITIVE_INFINITY } = request;
      let left = maxBytes - Number(response.headers["content-length"] ?? 0);
      if (left < 0) throw answerTooLarge(response, maxBytes);
      left = maxBytes;
      await takePieces(response, (piece) => {
        left -= piece.length;
        if (left < 0) throw answerTooLarge(response, maxBytes);
        pieces.push(piece);
      });
    });
    return Buffer.concat(pieces);
  }

  /** Gives the pieces of the answer, at the pace of whoever reads them. Breaking off ends the request. */
  async *stream(name: RouteName, request: ClientRequest): AsyncGenerator<Buffer> {
    const { signal } = request;
    signal?.throwIfAborted();
    try {
      const response = await this.#send(name, request);
      if ((response.statusCode ?? 500) >= 300) throw await refusedBy(response);
      for await (const piece of response) yield piece as Buffer;
    } catch (error) {
      throw this.#failure(error, signal);
    }
  }

  /** Calls `take` with each piece of the answer, and waits for it. */
  async pieces(
    name: RouteName,
    request: ClientRequest,
    take: (piece: Buffer) => Promise<void>,
  ): Promise<void> {
    await this.#answer(name, request, async (response) => {
      for await (const piece of response) await take(piece as Buffer);
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  async #answer(
    name: RouteName,
    request: ClientRequest,
    read: (response: IncomingMessage) => Promise<void>,
  ): Promise<void> {
    const { signal, body } = request;
    signal?.throwIfAborted();
    const sent = isPieces(body) ? new SentPieces(body) : null;
    try {
      const response = await this.#send(name, sent === null ? request : { ...request, body: sent });
      if ((response.statusCode ?? 500) >= 300) throw await refusedBy(response);
      await read(response);
    } catch (error) {
      if (sent?.failure !== undefined) throw sent.failure.error;
      throw this.#failure(error, signal);
    }
  }

  #failure(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    if (error instanceof BrigError) return error;
    return new BrigError(`the connection to ${this.#url.origin} failed`, {
      code: "serve.unreachable",
      hint: hintFor(error),
      cause: error,
    });
  }

  #send(
    name: RouteName,
    { query = {}, headers: own = {}, body, signal, ...parts }: ClientRequest,
  ): Promise<IncomingMessage> {
    const { method, path } = routes[name];
    const url = new URL(this.#url);
    const { id = "", process = "" } = parts;
    url.pathname += path
      .slice(1)
      .replace("{id}", encodeURIComponent(id))
      .replace("{process}", encodeURIComponent(process));
    for (const [key, value] of Object.entries(query))
      for (const one of Array.isArray(value) ? value : [value])
        if (one !== undefined) url.searchParams.append(key, `${one}`);
    const bytes = body === undefined || body instanceof SentPieces ? null : bytesOf(body);
    const headers = {
      ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)),
      authorization: `Bearer ${this.#token}`,
      ...(bytes !== null && {
        "content-type": body instanceof Uint8Array ? "application/octet-stream" : "application/json",
        "content-length": bytes.length,
      }),
      ...(body instanceof SentPieces && { "content-type": "application/octet-stream" }),
    };
    const open = url.protocol === "https:" ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const sent = open(url, { method, agent: this.#agent, headers, signal, socketPath: this.#socketPath });
      sent.on("error", reject);
      if (body instanceof SentPieces) {
        const pieces = Readable.from(body, { objectMode: false });
        pieces.on("error", (error) => sent.destroy(error)).pipe(sent);
        // Whatever is answered, nothing more of it is wanted.
        sent.once("response", () => pieces.destroy());
      } else sent.end(bytes);
      sent.once("response", resolve);
    });
  }
}

function hintFor(error: unknown): string {
  const errno = errnoOf(error) ?? "";
  if (/CERT|VERIFY|ISSUER|SIGNATURE|ALTNAME/.test(errno))
    return "give the authority of the service's certificate as ca, and the name that it is for in the address";
  return "is brig serve running, and is this its address?";
}

/** A body that is sent as it comes, and why it has ended early. */
class SentPieces implements AsyncIterable<Uint8Array> {
  readonly #pieces: AsyncIterable<Uint8Array>;
  failure: { error: unknown } | undefined;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#pieces;
    } catch (error) {
      this.failure = { error };
      throw error;
    }
  }
}

function isPieces(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body;
}

function answerTooLarge(response: IncomingMessage, maxBytes: number): BrigError {
  response.destroy();
  return new BrigError(`the answer is longer than ${maxBytes} bytes`, {
    code: "file.too-large",
    hint: "read it in parts with offsetBytes and lengthBytes, or as a stream",
  });
}

/** Why a client fails that does not get what the description says. */
export function notUnderstood(reason: string): BrigError {
  return new BrigError(`the service's answer is not understood: ${reason}`, {
    code: "serve.failed",
    hint: "use the client of the same version of brig",
  });
}

function bytesOf(body: unknown): Uint8Array {
  return body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
}

async function refusedBy(response: IncomingMessage): Promise<BrigError> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of response) {
    bytes += (piece as Buffer).length;
    if (bytes > MAX_ERROR_BYTES) break;
    pieces.push(piece as Buffer);
  }
  const parsed = errorBodySchema.safeParse(parseJson(Buffer.concat(pieces).toString()));
  if (!parsed.success) return notUnderstood(`it has the status ${response.statusCode}`);
  const { code, message, hint, errno, reason, disk } = parsed.data.error;
  // Another version of the service may have further codes; programs that test for a code do not know them either.
  return new BrigError(message, { code: code as ErrorCode, hint, errno, reason, disk });
}

function parsedUrl(text: string): URL {
  try {
    const url = new URL(text);
    if (url.protocol === "http:" || url.protocol === "https:") {
      if (!url.pathname.endsWith("/")) url.pathname += "/";
      return url;
    }
  } catch {
    // The same as for another protocol.
  }
  throw invalidUsage(
    `${JSON.stringify(text)} is not the address of a service`,
    "brig serve prints its address, such as http://127.0.0.1:8017",
  );
}
