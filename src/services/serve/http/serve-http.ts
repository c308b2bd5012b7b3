import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { formatBytes } from "../../../lib/bytes.js";
import { isLocal, isWildcard, type ListenAddress, listenAt } from "../../../lib/http/listen.js";
import { type PageAsset, servedPage } from "../../../lib/http/page-html.js";
import {
  ANSWERS_ITSELF,
  closeOf,
  endOf,
  openApp,
  openWebServer,
  type Served,
  sendWhole,
  type WebServerLimits,
} from "../../../lib/http/web-server.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import type { AuditFacts, AuditLog } from "../audit-log.js";
import { type Route, type RouteName, routes } from "../wire/routes.js";
import { MAX_FILE_BYTES } from "../wire/schemas.js";
import { takePieces } from "../wire/take-pieces.js";
import { Callers } from "./callers.js";
import { Connections } from "./connections.js";
import { KnownSites } from "./known-sites.js";
import type { MemoryBudget, MemoryShare } from "./memory-budget.js";
import { answerOther, type OtherProtocol, upgradeOther } from "./other-protocol.js";
import { ending, notAllowed, notFound, Refusal, refusedAnswer } from "./refusal.js";
import type { RenewedTls } from "./renewed-tls.js";
import {
  type Answer,
  type Call,
  type Calls,
  refusalResponse,
  responseOf,
  type SentAnswer,
} from "./response.js";
import { refuseChanges, type ServedClient } from "./served-client.js";
import { Upgrades } from "./upgrades.js";
import { discardRest, uploadedBody } from "./uploaded-body.js";

export interface HttpService {
  /** Default: any free port of 127.0.0.1. */
  listen?: ListenAddress | undefined;
  /** Default: without TLS. */
  tls?: RenewedTls | undefined;
  /** Names of the service besides those of its address and of its certificate. */
  allowedHosts?: readonly string[] | undefined;
  /** Asked for each request, so that clients may come and go. */
  clients: () => readonly ServedClient[];
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
  /** What is at `/`, for people. Default: nothing. */
  page?: PageAsset | undefined;
  /** Where it is noted who has asked for what. Default: nowhere. */
  audit?: AuditLog | undefined;
  /** Whose sandbox an id is of; null for an unknown one. Default: nobody sees those of others. */
  ownerOf?: ((id: string) => string | null) | undefined;
  /** In place of a port and tokens: a socket that only one user of this machine can open. */
  door?: LocalDoor | undefined;
  /** What is served at the same address besides the routes. Default: nothing. */
  others?: readonly OtherProtocol[] | undefined;
}

interface LocalDoor {
  /** Everybody who comes through it. */
  client: ServedClient;
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

const anyPort: ListenAddress = { kind: "port", host: "127.0.0.1", port: 0 };

/** Serves until it is drained, or until the signal aborts: then it rejects with its reason. */
export async function serveHttp(service: HttpService): Promise<void> {
  const { drain, signal, onListening, settled } = service;
  const limits = { ...defaultLimits, ...service.limits };
  const answering = new Answering(service, limits);
  const server = answering.server();
  const upgrades = answering.upgrades(server);
  using either = new AnySignal([drain, signal]);
  try {
    onListening(await listen(server, service));
    if (!either.signal.aborted) await once(either.signal, "abort");
    await unlessAborted(signal, settled?.());
    await answering.idle();
    signal.throwIfAborted();
  } finally {
    await Promise.all([upgrades.close(), endOf(server)]);
  }
}

/** Resolves to what clients connect to. */
async function listen(
  server: Server,
  { listen: address = anyPort, tls, door }: HttpService,
): Promise<string> {
  if (door !== undefined) return await door.listen(server);
  const place = await listenAt(server, address);
  return address.kind === "socket" ? `unix:${place}` : `${tls === undefined ? "http" : "https"}://${place}`;
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
  readonly #limits: WebServerLimits & { unreadMs: number };
  readonly #running = new Set<Promise<unknown>>();
  readonly #sites: KnownSites;
  readonly #connections: Connections;
  readonly #callers: Callers;
  /** How many milliseconds a client may pause while it sends a body that is passed on in pieces. */
  readonly #silentMs: number;

  constructor(service: HttpService, limits: WebServerLimits & { unreadMs: number }) {
    const { listen = anyPort, tls, allowedHosts = [], clients } = service;
    this.#service = service;
    this.#limits = limits;
    this.#silentMs = limits.requestMs || defaultLimits.requestMs;
    this.#sites = new KnownSites({
      isLocal: isLocal(listen),
      host: listen.kind === "port" ? listen.host : null,
      isWildcard: listen.kind === "port" && isWildcard(listen.host),
      names: allowedHosts,
      certificate: () => tls?.certificate ?? null,
    });
    const max = limits.maxConnections;
    this.#connections = new Connections({
      max,
      maxPerClient: () => (clients().length > 1 ? Math.ceil(max / 2) : max),
    });
    this.#callers = new Callers(clients, this.#connections);
    this.#silentMs = service.limits?.requestMs || defaultLimits.requestMs;
  }

  server(): Server {
    const { tls } = this.#service;
    // Those that give way are still there for a moment.
    const maxConnections = 2 * this.#limits.maxConnections;
    const limits = { ...this.#limits, maxConnections, isLong: isUpload };
    const server = openWebServer(this.app(), limits, tls?.serverOptions);
    tls?.attach(server);
    this.#connections.watch(server);
    return server;
  }

  app(): Hono<Served> {
    const app = openApp();
    app.use(async ({ env }, next) => {
      const { incoming, outgoing } = env;
      this.#service.audit?.watch(incoming, outgoing);
      const other = this.#service.others?.find((one) => one.takes(incoming));
      if (other === undefined) {
        this.#sites.refuseOthers(incoming);
        return await next();
      }
      void answerOther(other, env, this.#surroundings(incoming));
      return ANSWERS_ITSELF;
    });
    for (const [path, methods] of routesByPath())
      app.all(path.replaceAll(/\{(\w+)\}/g, ID), async (context) => {
        const name = methods.get(context.req.method);
        if (name === undefined) throw notAllowed([...methods.keys()]);
        return await this.#serve(name, context);
      });
    const { page, door } = this.#service;
    if (page !== undefined) addPage(app, page);
    door?.extend(app);
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

  /** What another protocol has for a request. It may have it checked as it would be with other headers. */
  #surroundings(incoming: IncomingMessage) {
    const { memory, signal, onFault, audit } = this.#service;
    return {
      ...{ memory, signal, onFault },
      refuseOtherSites: (asked: IncomingMessage) => this.#sites.refuseOthers(asked),
      clientOf: (asked: IncomingMessage) => {
        const client = this.#callers.callerOf(asked);
        audit?.note(incoming, { client: client.name });
        return client;
      },
      isOf: (client: string) => {
        audit?.note(incoming, { client });
        this.#callers.requireNamed(client, incoming);
      },
    };
  }

  /** Upgraded connections are no calls: the service ends without waiting for them. */
  upgrades(server: Server): Upgrades {
    const { memory, signal: over, calls, onFault, door, audit, others = [] } = this.#service;
    return new Upgrades(server, {
      upgradeOther: (incoming, socket) => {
        const other = others.find((one) => one.takes(incoming));
        return other && upgradeOther(other, { incoming, socket }, this.#surroundings(incoming));
      },
      ...{ unreadMs: this.#limits.unreadMs, onFault, audit },
      check: (incoming) => {
        this.#sites.refuseOthers(incoming);
        return door?.client ?? this.#callers.callerOf(incoming);
      },
      share: ({ name }) => memory.share(name),
      takeOther: door?.takeUpgrade,
      answer: async ({ name, client, incoming, parts, query, memory, signal }) => {
        audit?.note(incoming, { client: client.name, call: name, sandbox: parts.id });
        refuseChanges(client, routes[name]);
        if (over.aborted) throw ending();
        const call = {
          ...callerOf(client),
          ...parts,
          query: queryOf(query, routes[name]),
          memory,
          signal,
        };
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
    const { incoming } = context.env;
    const { door, signal, audit } = this.#service;
    const route: Route = routes[name];
    const client = route.isOpen === true ? nobody : (door?.client ?? this.#callers.callerOf(incoming));
    audit?.note(incoming, { client: client.name || undefined, call: name, sandbox: context.req.param("id") });
    refuseChanges(client, route);
    const either = new AnySignal([signal]);
    const memory = this.#service.memory.share(client.name);
    const answered = this.#answer({ name, client }, context, { signal: either.signal, memory });
    const ended = Promise.allSettled([
      isClosed(context.env, either),
      answered.then(({ ended }) => ended),
    ]).then(() => {
      either[Symbol.dispose]();
      memory[Symbol.dispose]();
      this.#running.delete(ended);
    });
    if (!isCut(route)) this.#running.add(ended);
    return (await answered).response;
  }

  async #answer(
    { name, client }: { name: RouteName; client: ServedClient },
    { req, env: { incoming, outgoing } }: Context<Served>,
    { signal, memory }: Pick<Call<RouteName>, "signal" | "memory">,
  ): Promise<SentAnswer> {
    const route: Route = routes[name];
    const { ownerOf, audit } = this.#service;
    this.#refuseWhileDraining(route);
    const query = queryOf(req.queries(), route);
    const headers = route.headers && parsedAs(route.headers, incoming.headers, "a header");
    const body =
      route.body === "stream"
        ? uploadedBody(incoming, this.#silentMs)
        : await readBody(incoming, route.body, memory);
    audit?.note(incoming, factsOf(query, body));
    // The table of routes says that query, headers and body are what this call takes.
    const parts = { id: req.param("id") ?? "", process: req.param("process") ?? "" };
    const call = {
      ...callerOf(client),
      ...(route.isForAll && client.rights.seesAll && { client: ownerOf?.(parts.id) ?? client.name }),
      ...parts,
      query,
      headers,
      body,
      signal,
      memory,
    } as Call<RouteName>;
    const answer = this.#service.calls[name] as ((call: Call<RouteName>) => Promise<Answer>) | undefined;
    if (answer === undefined) throw notFound();
    try {
      const answered = await answer(call);
      audit?.note(incoming, { made: madeBy(route, answered) });
      return responseOf(route.answer.status, answered, outgoing);
    } catch (error) {
      if (route.body === "stream" && !signal.aborted) await discardRest(incoming);
      throw error;
    }
  }

  #refuseWhileDraining({ begins }: Route): void {
    const { drain, signal } = this.#service;
    if (begins === true && (drain.aborted || signal.aborted)) throw ending();
  }
}

/** It holds nothing of what the service has, so that it needs no token: whoever reads it types one into it. */
function addPage(app: Hono<Served>, asset: PageAsset): void {
  const { html, headers } = servedPage(asset, {
    title: "brig serve",
    withoutScript:
      "This page shows what a service of brig does with JavaScript, which is turned off. GET /openapi.json describes all requests.",
  });
  const bytes = Buffer.from(html);
  app.all("/", ({ req, env: { outgoing } }) => {
    if (req.method !== "GET") throw notAllowed(["GET"]);
    return sendWhole(outgoing, { status: 200, headers, bytes });
  });
}

/** Who asks without a token. */
const nobody: ServedClient = {
  name: "",
  tokenHash: Buffer.alloc(32),
  rights: { seesAll: false, mayChange: true },
  quota: {},
};

/** What an audit log says of the contents of a request. */
function factsOf(query: unknown, body: unknown): AuditFacts {
  const parsed = auditedSchema.safeParse({
    ...(query as object),
    ...(Buffer.isBuffer(body) ? {} : (body as object)),
  });
  if (!parsed.success) return {};
  const { path: file, ...facts } = parsed.data;
  return { file, ...facts };
}

const fact = z.string().optional();
const auditedSchema = z.object({
  ...{ image: fact, mode: fact, network: fact, task: fact, path: fact },
  argv: z.array(z.string()).optional(),
});

/** The ids of what a request has made. */
function madeBy({ begins }: Route, answer: Answer): string[] | undefined {
  if (begins !== true || answer.kind !== "json") return undefined;
  const made = madeSchema.safeParse(answer.value);
  if (!made.success) return undefined;
  const { id, sandboxes = [] } = made.data;
  return id === undefined ? sandboxes.map((sandbox) => sandbox.id) : [id];
}

const madeSchema = z.object({
  id: z.string().optional(),
  sandboxes: z.array(z.object({ id: z.string() })).optional(),
});

function callerOf({ name, rights }: ServedClient): Pick<Call<RouteName>, "client" | "rights"> {
  return { client: name, rights };
}

const uploads = Object.values<Route>(routes)
  .filter(({ body }) => body === "stream")
  .map(({ method, path }) => ({ method, ending: path.slice(path.lastIndexOf("/")) }))
  .concat({ method: "POST", ending: "/files" });

/** Whether its body may take any time to arrive; whoever reads it ends one that stops. */
function isUpload({ method, url = "" }: IncomingMessage): boolean {
  const [path = ""] = url.split("?", 1);
  return uploads.some((upload) => upload.method === method && path.endsWith(upload.ending));
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

/** Resolves when the answer is sent, or the client has gone, for which the call is aborted. */
async function isClosed({ outgoing }: HttpBindings, call: AnySignal): Promise<void> {
  if (!(await closeOf(outgoing))) call.abort(new DOMException("the client has disconnected", "AbortError"));
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
  schema: Exclude<Route["body"], "stream">,
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
