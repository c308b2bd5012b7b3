import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { createMcpHandler, isLegacyRequest } from "@modelcontextprotocol/server";
import type { Hono } from "hono";
import { listenOnLoopback } from "../../lib/http/loopback.js";
import {
  closeOf,
  endOf,
  openApp,
  openWebServer,
  type Served,
  type WebServerLimits,
} from "../../lib/http/web-server.js";
import { type HttpRefusal, MCP_PATH, originRefusal, refusalOf, refusalResponse } from "./http-refusal.js";
import { HttpSessions, type SessionLimits } from "./http-sessions.js";
import { parseValue } from "./incoming-message.js";
import {
  allEnded,
  MAX_MESSAGE_BYTES,
  MAX_UNANSWERED,
  MAX_UNANSWERED_BYTES,
  type OpenClient,
  type ServedClient,
} from "./served-client.js";

type HttpLimits = WebServerLimits & SessionLimits;

const defaultLimits: HttpLimits = {
  maxConnections: 1024,
  maxSessions: 64,
  idleMs: 30 * 60_000,
  headMs: 10_000,
  requestMs: 60_000,
  unreadMs: 60_000,
};

export interface HttpService {
  /** 0: any free port. */
  port: number;
  /** What clients send as `Authorization: Bearer TOKEN`. */
  token: string;
  openClient: OpenClient;
  /** Aborting ends the service. */
  signal: AbortSignal;
  /** Called once, with the address that clients connect to. */
  onListening: (url: string) => void;
  limits?: Partial<HttpLimits>;
}

/**
 * Serves any number of clients on loopback until the signal aborts. Rejects with the signal's reason once
 * everything that the clients started has ended.
 */
export async function serveMcpHttp({ port, signal, onListening, ...service }: HttpService): Promise<never> {
  const limits = { ...defaultLimits, ...service.limits };
  limits.keepAliveMs ??= limits.headMs;
  const clients = new HttpClients({ ...service, limits });
  const server = openWebServer(clients.app(), limits);
  try {
    onListening(`http://${await listenOnLoopback(server, port)}${MCP_PATH}`);
    if (!signal.aborted) await once(signal, "abort");
    throw signal.reason;
  } finally {
    const closed = endOf(server);
    const ended = clients.close();
    await ended.catch(() => undefined);
    // Some connections have become idle only now, because their last answer has just been sent.
    server.closeIdleConnections();
    await closed;
    await ended;
  }
}

class HttpClients {
  readonly #token: string;
  readonly #openClient: OpenClient;
  readonly #sessions: HttpSessions;
  readonly #handler = createMcpHandler(() => this.#everyone().createServer(), { legacy: "reject" });
  #shared: ServedClient | undefined;
  #unanswered = 0;
  #unansweredBytes = 0;

  constructor({
    token,
    openClient,
    limits,
  }: Pick<HttpService, "token" | "openClient"> & { limits: SessionLimits }) {
    this.#token = token;
    this.#openClient = openClient;
    this.#sessions = new HttpSessions(openClient, limits);
  }

  app(): Hono<Served> {
    const app = openApp();
    app.use(async ({ env: { incoming } }, next) => {
      const refusal = originRefusal(incoming);
      return refusal === null ? await next() : refusalResponse(refusal, incoming);
    });
    app.all(MCP_PATH, async ({ req, env }) => {
      const answer = refusalOf(env.incoming, this.#token) ?? (await this.#answer(req.raw, env));
      return answer instanceof Response ? answer : refusalResponse(answer, env.incoming);
    });
    app.notFound(({ env: { incoming } }) =>
      refusalResponse({ status: 404, reason: `only ${MCP_PATH} is served` }, incoming),
    );
    app.onError((_, { env: { incoming } }) =>
      refusalResponse({ status: 500, reason: "the request could not be answered" }, incoming),
    );
    return app;
  }

  async close(): Promise<void> {
    await allEnded([this.#sessions.close(), this.#closeShared()]);
  }

  async #closeShared(): Promise<void> {
    await this.#handler.close();
    await this.#shared?.close();
  }

  /** Answers a request that has the right token. What it has counts until its answer is sent. */
  async #answer(request: Request, { incoming, outgoing }: HttpBindings): Promise<Response | HttpRefusal> {
    const closed = closeOf(outgoing);
    let bytes = 0;
    const hasRoom = (more: number) => {
      bytes += more;
      this.#unansweredBytes += more;
      return this.#unansweredBytes <= MAX_UNANSWERED_BYTES;
    };
    const giveBack = () => {
      this.#unansweredBytes -= bytes;
    };
    const read = await bodyOf(incoming, hasRoom).finally(() => void closed.then(giveBack));
    if (read.kind === "refused") return read.refusal;
    const { body } = read;
    const requests = Array.isArray(body) ? body.length : 1;
    if (this.#unanswered + requests > MAX_UNANSWERED)
      return { status: 503, reason: `${MAX_UNANSWERED} requests wait for their answers already` };
    this.#unanswered += requests;
    void closed.then(() => {
      this.#unanswered -= requests;
    });
    if (!(await isLegacyRequest(request, body)))
      return await this.#handler.fetch(request, { parsedBody: body });
    const answered = await this.#sessions.answer(request, body);
    if (answered.kind === "refused") return answered.refusal;
    void closed.then(answered.done);
    return answered.answer;
  }

  #everyone(): ServedClient {
    this.#shared ??= this.#openClient({ isShared: true });
    return this.#shared;
  }
}

/**
 * The parsed body of a POST. It is refused if `hasRoom` returns false for the length of a piece that has arrived.
 * Rejects if the client disconnects.
 */
async function bodyOf(
  request: IncomingMessage,
  hasRoom: (moreBytes: number) => boolean,
): Promise<{ kind: "body"; body: unknown } | { kind: "refused"; refusal: HttpRefusal }> {
  if (request.method !== "POST") return { kind: "body", body: undefined };
  const tooLong = { status: 413, reason: `a request may have at most ${MAX_MESSAGE_BYTES} bytes` };
  if (Number(request.headers["content-length"]) > MAX_MESSAGE_BYTES) return refused(tooLong);
  const pieces: Buffer[] = [];
  let bytes = 0;
  // Leaving this loop early must not close the connection, because the client has yet to receive the refusal.
  for await (const piece of request.iterator({ destroyOnReturn: false })) {
    bytes += piece.length;
    if (bytes > MAX_MESSAGE_BYTES) return refused(tooLong);
    if (!hasRoom(piece.length))
      return refused({
        status: 503,
        reason: `requests of more than ${MAX_UNANSWERED_BYTES} bytes would wait for their answers`,
      });
    pieces.push(piece);
  }
  const parsed = parseValue(Buffer.concat(pieces).toString());
  if (parsed.kind === "invalid") return refused({ status: 400, ...parsed });
  return { kind: "body", body: parsed.value };
}

function refused(refusal: HttpRefusal): { kind: "refused"; refusal: HttpRefusal } {
  return { kind: "refused", refusal };
}
