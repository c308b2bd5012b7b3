import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { AnySignal } from "../../lib/time/any-signal.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { listenOnLoopback } from "../../service/loopback.js";
import type { Route, RouteName } from "../wire/routes.js";
import { parsedAs, withBody } from "./body.js";
import type { Answer, Call, Calls } from "./calls.js";
import { clientOf, refuseOtherSites, type ServedClient } from "./guard.js";
import { type MatchedRoute, matchRoute } from "./match-route.js";
import type { MemoryBudget, MemoryShare } from "./memory-budget.js";
import { ending, refusedAnswer } from "./refusal.js";
import { sendAnswer, sendRefusal } from "./send-answer.js";

export interface HttpService {
  /** 0: any free port. */
  port: number;
  clients: readonly ServedClient[];
  calls: Calls;
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
  limits?: Partial<HttpLimits> | undefined;
}

/** All times are in milliseconds. */
export interface HttpLimits {
  maxConnections: number;
  /** How long the head of a request may take to arrive. */
  headMs: number;
  /** How long a whole request may take to arrive. */
  requestMs: number;
  /** How long a client may leave an answer unread. */
  unreadMs: number;
}

const defaultLimits: HttpLimits = {
  maxConnections: 1024,
  headMs: 10_000,
  requestMs: 120_000,
  unreadMs: 60_000,
};

/** Between two requests. Longer than the clients of most languages keep a connection, so that they close it first. */
const KEEP_ALIVE_MS = 75_000;
/** When the service ends, how long the rest of the answers may take to reach the clients. */
const LAST_ANSWERS_MS = 1000;

/** Serves until it is drained, or until the signal aborts: then it rejects with its reason. */
export async function serveHttp(service: HttpService): Promise<void> {
  const { port, drain, signal, onListening, settled } = service;
  const limits = { ...defaultLimits, ...service.limits };
  const answering = new Answering(service, limits);
  const server = createServer(
    {
      headersTimeout: limits.headMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: Math.min(1000, limits.headMs),
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (request, response) => void answering.serve(request, response),
  );
  server.maxConnections = limits.maxConnections;
  using either = new AnySignal([drain, signal]);
  try {
    onListening(`http://${await listenOnLoopback(server, port)}`);
    if (!either.signal.aborted) await once(either.signal, "abort");
    await unlessAborted(signal, settled?.());
    await answering.idle();
    signal.throwIfAborted();
  } finally {
    await endOf(server);
  }
}

async function unlessAborted(signal: AbortSignal, ending: Promise<void> = Promise.resolve()): Promise<void> {
  try {
    await beforeAbort(ending, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Connections get a moment to send what they have begun to send. */
async function endOf(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), LAST_ANSWERS_MS);
  await closed;
  clearTimeout(timer);
}

interface AnswerOptions {
  matched: MatchedRoute;
  query: unknown;
  client: string;
  signal: AbortSignal;
  memory: MemoryShare;
}

class Answering {
  readonly #service: HttpService;
  readonly #limits: HttpLimits;
  readonly #running = new Set<Promise<void>>();

  constructor(service: HttpService, limits: HttpLimits) {
    this.#service = service;
    this.#limits = limits;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => undefined);
    const running = this.#serve(request, response);
    this.#running.add(running);
    await running;
    this.#running.delete(running);
  }

  /** Resolves when no request is being answered. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => {
      if (!response.writableFinished)
        gone.abort(new DOMException("the client has disconnected", "AbortError"));
    });
    using either = new AnySignal([gone.signal, this.#service.signal]);
    using memory = this.#service.memory.share();
    try {
      refuseOtherSites(request);
      // Not read as a URL, which would resolve `..` and another host.
      const [path = "", search = ""] = `${request.url}`.split(/\?(.*)/s);
      const matched = matchRoute(`${request.method}`, path);
      const client = matched.route.isOpen === true ? "" : clientOf(request, this.#service.clients);
      this.#refuseWhileDraining(matched.route);
      const query = queryOf(new URLSearchParams(search), matched.route);
      await this.#answer(request, response, { matched, query, client, signal: either.signal, memory });
    } catch (error) {
      const answer = refusedAnswer(error);
      if (answer.status === 500 && !either.signal.aborted) this.#service.onFault(error);
      sendRefusal(response, answer);
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    { matched, query, client, signal, memory }: AnswerOptions,
  ): Promise<void> {
    const { name, route, id } = matched;
    const { unreadMs } = this.#limits;
    const reply = async (body: unknown) => {
      const answer = await this.#call(name, { client, id, query, body, signal, memory });
      await sendAnswer(response, { status: route.answer.status, answer, unreadMs });
    };
    if (route.body === undefined) await reply(undefined);
    else await withBody(request, { schema: route.body, memory, use: reply });
  }

  /** The table of routes says that query and body are what this call takes. */
  async #call(name: RouteName, call: object): Promise<Answer> {
    const answer = this.#service.calls[name] as (call: Call<RouteName>) => Promise<Answer>;
    return await answer(call as Call<RouteName>);
  }

  #refuseWhileDraining({ begins }: Route): void {
    const { drain, signal } = this.#service;
    if (begins === true && (drain.aborted || signal.aborted)) throw ending();
  }
}

/** Error: a refusal with 400, also for a parameter that is given twice. */
function queryOf(parameters: URLSearchParams, { query }: Route): unknown {
  if (query === undefined) return undefined;
  const values: Record<string, unknown> = {};
  for (const name of new Set(parameters.keys())) {
    const all = parameters.getAll(name);
    values[name] = all.length === 1 ? all[0] : all;
  }
  return parsedAs(query, values, "the query");
}
