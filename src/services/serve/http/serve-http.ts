import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { formatBytes } from "../../../lib/bytes.js";
import { hasToken } from "../../../lib/http/bearer-token.js";
import { isLoopbackHost, isLoopbackUrl, listenOnLoopback } from "../../../lib/http/loopback.js";
import {
  closeOf,
  endOf,
  openApp,
  openWebServer,
  type Served,
  type WebServerLimits,
} from "../../../lib/http/web-server.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { type Route, type RouteName, routes } from "../wire/routes.js";
import { MAX_FILE_BYTES } from "../wire/schemas.js";
import { takePieces } from "../wire/take-pieces.js";
import type { MemoryBudget, MemoryShare } from "./memory-budget.js";
import { ending, notAllowed, notFound, Refusal, refusedAnswer } from "./refusal.js";
import {
  type Answer,
  type Call,
  type Calls,
  refusalResponse,
  responseOf,
  type SentAnswer,
} from "./response.js";
import { Upgrades } from "./upgrades.js";

export interface HttpService {
  /** 0: any free port. */
  port: number;
  clients: readonly ServedClient[];
  calls: Partial<Calls>;
  /** For what is kept of all requests. */
  memory: MemoryBudget;
  /** Once it is aborted, nothing new begins, and the service ends when all calls are answered. */
  drain: AbortSignal;
  /** Ends all calls and the service at once. */
  signal: AbortSignal;
  /** Called once, with the address that clients connect to. */
  onListening: (url: string) => void;
  /** Called for an error that is a fault of brig. */
  onFault: (error: unknown) => void;
  /**
   * Resolves when what goes on without a call has ended, such as episodes. It is not waited for once `signal` is aborted:
   * whoever has started that ends it when the service has ended.
   */
  settled?: (() => Promise<void>) | undefined;
  limits?: Partial<WebServerLimits> | undefined;
  /** In place of a port and tokens: a socket that only one user of this machine can open. */
  door?: LocalDoor | undefined;
}

interface LocalDoor {
  /** What everybody is called who comes through it. */
  client: string;
  /** Resolves to what `onListening` is told. */
  listen(server: Server): Promise<string>;
  /** Adds what only comes through this door. */
  extend(app: Hono<Served>): void;
  /** The same for connections that become something else than a WebSocket. False for one that it does not know. */
  takeUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): boolean;
}

const defaultLimits = {
  maxConnections: 1024,
  headMs: 10_000,
  requestMs: 120_000,
  unreadMs: 60_000,
  // Longer than the clients of most languages keep a connection, so that they close it first.
  keepAliveMs: 75_000,
} satisfies WebServerLimits;

/** In place of `{id}` and `{process}`; no id that is ever given out is another. */
const ID = ":$1{[A-Za-z0-9_-]{1,64}}";

/** Serves until it is drained, or until the signal aborts: then it rejects with its reason. */
export async function serveHttp(service: HttpService): Promise<void> {
  const { port, drain, signal, onListening, settled, door } = service;
  const limits = { ...defaultLimits, ...service.limits };
  const answering = new Answering(service);
  const server = openWebServer(answering.app(), limits);
  const upgrades = answering.upgrades(server, limits.unreadMs ?? defaultLimits.unreadMs);
  using either = new AnySignal([drain, signal]);
  try {
    onListening(
      door === undefined ? `http://${await listenOnLoopback(server, port)}` : await door.listen(server),
    );
    if (!either.signal.aborted) await once(either.signal, "abort");
    await unlessAborted(signal, settled?.());
    await answering.idle();
    signal.throwIfAborted();
  } finally {
    await Promise.all([upgrades.close(), endOf(server)]);
  }
}

async function unlessAborted(signal: AbortSignal, ending: Promise<void> = Promise.resolve()): Promise<void> {
  try {
    await beforeAbort(ending, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

class Answering {
  readonly #service: HttpService;
  readonly #running = new Set<Promise<unknown>>();

  constructor(service: HttpService) {
    this.#service = service;
  }

  app(): Hono<Served> {
    const app = openApp();
    app.use(async ({ env }, next) => {
      refuseOtherSites(env.incoming);
      await next();
    });
    for (const [path, methods] of routesByPath())
      app.all(path.replaceAll(/\{(\w+)\}/g, ID), async (context) => {
        const name = methods.get(context.req.method);
        if (name === undefined) throw notAllowed([...methods.keys()]);
        return await this.#serve(name, context);
      });
    this.#service.door?.extend(app);
    app.notFound(() => {
      throw notFound();
    });
    app.onError((error, { env }) => {
      const answer = refusedAnswer(error);
      if (answer.status === 500 && !env.outgoing.closed && !this.#service.signal.aborted)
        this.#service.onFault(error);
      return refusalResponse(answer, env.incoming);
    });
    return app;
  }

  /** Upgraded connections are no calls: the service ends without waiting for them. */
  upgrades(server: Server, unreadMs: number): Upgrades {
    const { memory, signal: over, clients, calls, onFault, door } = this.#service;
    return new Upgrades(server, {
      ...{ unreadMs, onFault, check: refuseOtherSites, share: () => memory.share() },
      takeOther: door?.takeUpgrade,
      answer: async ({ name, incoming, parts, query, memory, signal }) => {
        const client = door?.client ?? clientOf(incoming, clients);
        if (over.aborted) throw ending();
        const call = { client, ...parts, query: queryOf(query, routes[name]), memory, signal };
        // The table of routes says that the query is what this call takes.
        const answer = calls[name] as ((call: unknown) => Promise<Answer>) | undefined;
        if (answer === undefined) throw notFound();
        return await answer(call);
      },
    });
  }

  /** Resolves when no request is being answered. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Keeps what the call has until its answer is sent and nothing of the call goes on. */
  async #serve(name: RouteName, context: Context<Served>): Promise<Response> {
    const gone = new AbortController();
    const either = new AnySignal([gone.signal, this.#service.signal]);
    const memory = this.#service.memory.share();
    const answered = this.#answer(name, context, { signal: either.signal, memory });
    const ended = Promise.allSettled([isClosed(context.env, gone), answered.then(({ ended }) => ended)]).then(
      () => {
        either[Symbol.dispose]();
        memory[Symbol.dispose]();
        this.#running.delete(ended);
      },
    );
    if (!isCut(routes[name])) this.#running.add(ended);
    return (await answered).response;
  }

  async #answer(
    name: RouteName,
    { req, env: { incoming, outgoing } }: Context<Served>,
    { signal, memory }: Pick<Call<RouteName>, "signal" | "memory">,
  ): Promise<SentAnswer> {
    const route: Route = routes[name];
    const { clients, door } = this.#service;
    const client = route.isOpen === true ? "" : (door?.client ?? clientOf(incoming, clients));
    this.#refuseWhileDraining(route);
    const query = queryOf(req.queries(), route);
    const headers = route.headers && parsedAs(route.headers, incoming.headers, "a header");
    const body = await readBody(incoming, route.body, memory);
    // The table of routes says that query, headers and body are what this call takes.
    const parts = { id: req.param("id") ?? "", process: req.param("process") ?? "" };
    const call = { client, ...parts, query, headers, body, signal, memory } as Call<RouteName>;
    const answer = this.#service.calls[name] as ((call: Call<RouteName>) => Promise<Answer>) | undefined;
    if (answer === undefined) throw notFound();
    return responseOf(route.answer.status, await answer(call), outgoing);
  }

  #refuseWhileDraining({ begins }: Route): void {
    const { drain, signal } = this.#service;
    if (begins === true && (drain.aborted || signal.aborted)) throw ending();
  }
}

/** Whether the service ends without waiting for its answer. */
function isCut({ waitsForProcess }: Route): boolean {
  return waitsForProcess === true;
}

/** The methods of each path, and what they are called. */
function routesByPath(): Map<string, Map<string, RouteName>> {
  const paths = new Map<string, Map<string, RouteName>>();
  for (const [name, { path, method }] of Object.entries<Route>(routes))
    paths.set(path, (paths.get(path) ?? new Map()).set(method, name as RouteName));
  return paths;
}

/** Resolves when the answer is sent, or the client has gone, for which `gone` is aborted. */
async function isClosed({ outgoing }: HttpBindings, gone: AbortController): Promise<void> {
  if (!(await closeOf(outgoing))) gone.abort(new DOMException("the client has disconnected", "AbortError"));
}

/** Error: a refusal with 400, also for a parameter that is given twice. */
function queryOf(parameters: Record<string, string[]>, { query }: Route): unknown {
  if (query === undefined) return undefined;
  const values = Object.entries(parameters).map(([name, all]) => [name, all.length === 1 ? all[0] : all]);
  return parsedAs(query, Object.fromEntries(values), "the query");
}

const MAX_JSON_BYTES = 16 * 1024 * 1024;
/** The text of a body, and what is made of it. */
const JSON_COPIES = 2;

/** The parsed body of a request. Errors: refusals with 400, 413 and 429; the client's if it disconnects. */
async function readBody(
  request: IncomingMessage,
  schema: Route["body"],
  memory: MemoryShare,
): Promise<unknown> {
  if (schema === undefined) return undefined;
  const pieces: Buffer[] = [];
  let bytes = 0;
  const maxBytes = schema === "bytes" ? MAX_FILE_BYTES : MAX_JSON_BYTES;
  const copies = schema === "bytes" ? 1 : JSON_COPIES;
  if (Number(request.headers["content-length"]) > maxBytes) throw tooLarge(maxBytes);
  await takePieces(request, (piece) => {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    memory.take(piece.length * copies);
    pieces.push(piece);
  });
  const whole = Buffer.concat(pieces.splice(0));
  return schema === "bytes" ? whole : parsedJson(whole, schema);
}

/** Error: a refusal with 400 that names everything that is wrong. */
function parsedAs(schema: z.ZodType, value: unknown, of: string): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(`${of} is not valid:\n${z.prettifyError(parsed.error)}`);
}

function parsedJson(bytes: Buffer, schema: z.ZodType): unknown {
  let value: unknown = {};
  try {
    if (bytes.length > 0) value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw invalid("the body is not JSON in UTF-8", cause);
  }
  if (isTooDeep(value)) throw invalid("the body is nested too deeply");
  return parsedAs(schema, value, "the body");
}

function invalid(message: string, cause?: unknown): Refusal {
  return new Refusal(message, {
    status: 400,
    code: "usage.invalid",
    hint: "GET /openapi.json describes all requests",
    cause,
  });
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(`a body of this request may have at most ${formatBytes(maxBytes)}`, {
    status: 413,
    code: "file.too-large",
    hint: "send it in several requests",
  });
}

/** Who may use the service. Each client sees only what it has made itself. */
export interface ServedClient {
  name: string;
  token: string;
}

/** Error: a refusal with 403 for a request that a page of another site may have made. */
function refuseOtherSites({ headers }: IncomingMessage): void {
  // A hostile site can let its name resolve to 127.0.0.1, so that its pages reach this server (DNS rebinding). The
  // Host header then has the site's name.
  if (!isLoopbackHost(headers.host)) throw forbidden("the Host header names another machine");
  if (headers.origin !== undefined && !isLoopbackUrl(headers.origin))
    throw forbidden("pages of other machines are not served");
}

/** The client whose token the request has. Error: a refusal with 401. */
function clientOf({ headers }: IncomingMessage, clients: readonly ServedClient[]): string {
  // All are compared, so that the time says nothing about which one it was.
  const matching = clients.filter(({ token }) => hasToken(headers, token));
  const [client] = matching;
  if (client !== undefined) return client.name;
  throw new Refusal("the token is missing or wrong", {
    status: 401,
    code: "serve.refused",
    hint: "send it as Authorization: Bearer TOKEN",
    headers: { "www-authenticate": 'Bearer realm="brig"' },
  });
}

function forbidden(message: string): Refusal {
  return new Refusal(message, {
    status: 403,
    code: "serve.refused",
    hint: "connect to 127.0.0.1 or localhost",
  });
}
