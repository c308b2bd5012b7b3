import type { Duplex } from "node:stream";
import { Gate } from "../../lib/time/gate.js";
import { SharedWork } from "../../lib/time/shared-work.js";
import { NAME_SERVER, PROXY_ADDRESS } from "./addresses.js";
import type { AskAboutHost, EgressAttempt, EgressPhase } from "./attempt.js";
import type { CanarySearch } from "./canaries/canary-search.js";
import type { Canary } from "./canaries/new-canary.js";
import { type Resolve, resolveOnHost } from "./dial.js";
import { DEFAULT_EGRESS_LIMITS, EgressGate, type EgressLimits, type OnCanary } from "./gate.js";
import {
  type ConnectionOwner,
  type InsideAddress,
  type InsideConnection,
  type InsideListener,
  type InsideNetwork,
  readExactly,
} from "./inside-network.js";
import type { Inspection } from "./inspection.js";
import { reset } from "./join.js";
import { answerQuery, type NameAnswer } from "./name-server.js";
import { HttpProxy } from "./proxy/http-proxy.js";
import { serveSocks } from "./proxy/socks-proxy.js";
import type { UpstreamProxy } from "./read-upstream.js";
import { type Endpoint, portsOf } from "./rules/decide.js";
import { parseTarget, shownHost, type Target } from "./rules/target.js";
import { openTunnel } from "./tunnel.js";

export interface EgressOptions {
  /** The entries of the allow-list, in their normal spelling. */
  hosts: readonly string[];
  onAttempt?: ((attempt: EgressAttempt) => void) | undefined;
  limits?: Partial<EgressLimits> | undefined;
  /** Rules for requests, and secrets. Default: none. */
  inspection?: Inspection | undefined;
  /** Default: none. */
  canaries?: readonly Canary[] | undefined;
  onCanary?: OnCanary | undefined;
  /** Default: as the host's own programs resolve names. */
  resolve?: Resolve | undefined;
  /** The proxy through which this machine reaches the internet. Default: it needs none. */
  upstream?: UpstreamProxy | null | undefined;
}

export interface Egress {
  /** Allows these hosts from now on, and no others. Connections to others are cut. Default for the phase: "run". */
  setHosts(hosts: readonly string[], phase?: EgressPhase): void;
  /** The entries of the list of the moment, with what the user has allowed besides. */
  readonly hosts: readonly string[];
  /** Asks the user from now on about connections through the proxy that no rule allows. */
  askWith(ask: AskAboutHost): void;
  /** Cuts all connections. */
  close(): Promise<void>;
}

/** Lets programs in a sandbox reach what the allow-list allows, and nothing else. */
export async function openEgress(network: InsideNetwork, options: EgressOptions): Promise<Egress> {
  const limits = { ...DEFAULT_EGRESS_LIMITS, ...options.limits };
  const gate = new EgressGate({
    hosts: options.hosts,
    limits,
    inspection: options.inspection ?? null,
    resolve: boundedLookups(options.resolve ?? resolveOnHost, { timeoutMs: limits.connectTimeoutMs }),
    canaries: await searchFor(options.canaries ?? []),
    onCanary: options.onCanary ?? (() => undefined),
    onAttempt: options.onAttempt ?? (() => undefined),
    upstream: options.upstream ?? null,
  });
  const http = new HttpProxy(gate);
  const connections = new OpenConnections(network, gate);
  const names = new NameAddresses(network, gate, (connection, endpoint) => {
    const owner = connections.admit(connection, endpoint.port);
    if (owner === null) return;
    const cut = () => reset(connection.stream);
    void openTunnel(connection.stream, endpoint, {
      gate,
      attempting: { way: "direct", owner },
      serveHttp: http.serveHttp,
      answers: { accepted: () => undefined, denied: cut, failed: cut },
    }).catch(cut);
  });
  const findFor = (owner: Promise<ConnectionOwner | null>) => async (name: string, asksAddress: boolean) => {
    const hasCanary = (gate.canaries?.findInName(name) ?? null) !== null;
    const answer = hasCanary ? ({ kind: "unknown" } as const) : await names.find(name);
    if (answer.kind === "unknown" && (asksAddress || hasCanary)) {
      const record = gate.begin({ way: "name", owner }, { host: shownHost(name), port: null });
      await record({ kind: "denied", denial: { kind: "no-rule" } });
    }
    return answer;
  };
  const listeners = await Promise.all([
    network.listen(PROXY_ADDRESS, (connection) => {
      const owner = connections.admit(connection, null);
      if (owner !== null)
        void serveConnection(connection, { gate, http, owner }).catch(() => reset(connection.stream));
    }),
    network.receiveDatagrams(NAME_SERVER, (data, reply) => {
      void answerQuery(data, findFor(nobody)).then(
        (answer) => answer !== null && reply(answer),
        () => undefined,
      );
    }),
    network.listen(NAME_SERVER, (connection) => {
      const owner = connections.admit(connection, NAME_SERVER.port);
      if (owner === null) return;
      const { stream } = connection;
      const answer = (query: Buffer) => answerQuery(query, findFor(owner));
      void answerStream(stream, answer, { timeoutMs: limits.headTimeoutMs }).catch(() => reset(stream));
    }),
  ]);
  return {
    setHosts: (hosts, phase = "run") => gate.setHosts(hosts, phase),
    get hosts() {
      return [...new Set(gate.rules.map(({ origin }) => origin))];
    },
    askWith(ask) {
      gate.ask = ask;
    },
    close: async () => {
      gate.close();
      connections.close();
      await Promise.all([...listeners.map((one) => one.close()), names.close()]);
    },
  };
}

const nobody = Promise.resolve(null);

/** Loaded only where there are canaries. */
async function searchFor(canaries: readonly Canary[]): Promise<CanarySearch | null> {
  if (canaries.length === 0) return null;
  const { CanarySearch } = await import("./canaries/canary-search.js");
  return new CanarySearch(canaries);
}

/** The connections of all programs, which are limited in number. */
class OpenConnections {
  readonly #network: InsideNetwork;
  readonly #gate: EgressGate;
  readonly #open = new Set<InsideConnection["stream"]>();

  constructor(network: InsideNetwork, gate: EgressGate) {
    this.#network = network;
    this.#gate = gate;
  }

  /** Finds the owner of a connection; null if there are too many connections, and this one was reset. */
  admit(connection: InsideConnection, port: number | null) {
    const { stream } = connection;
    const limit = this.#gate.limits.maxConnections;
    stream.on("error", () => undefined);
    if (this.#open.size >= limit) {
      const record = this.#gate.begin(
        { way: "direct", owner: nobody },
        { host: connection.to.address, port },
      );
      void record({ kind: "denied", denial: { kind: "too-many", limit } });
      reset(stream);
      return null;
    }
    this.#open.add(stream);
    stream.once("close", () => this.#open.delete(stream));
    return this.#network.ownerOf(connection).catch(() => null);
  }

  close(): void {
    for (const stream of this.#open) reset(stream);
  }
}

interface ServeOptions {
  gate: EgressGate;
  http: HttpProxy;
  owner: Promise<ConnectionOwner | null>;
}

const SOCKS_5 = 5;

/** Serves a connection to the proxy's address. Its first byte says by which protocol. */
async function serveConnection(
  { stream }: InsideConnection,
  { gate, http, owner }: ServeOptions,
): Promise<void> {
  stream.on("error", () => undefined);
  const first = await readExactly(stream, 1, gate.limits.headTimeoutMs);
  if (first === null) return reset(stream);
  stream.unshift(first);
  const attempting = { way: "http", owner } as const;
  if (first[0] === SOCKS_5) return await serveSocks(stream, { gate, attempting, serveHttp: http.serveHttp });
  if (/[A-Za-z\r\n]/.test(first.toString("latin1"))) return http.serve(stream, { attempting, fixed: null });
  await gate.begin(attempting, { host: "", port: null })({ kind: "denied", denial: { kind: "malformed" } });
  reset(stream);
}

/**
 * A lookup holds one of Node's few threads until the name server answers, which a program can delay by its choice of
 * names. So all sandboxes of this process together hold two of them, and one sandbox holds one.
 */
const MOST_OF_PROCESS = 2;
const MOST_OF_SANDBOX = 1;
const allSandboxes = new Gate();

/**
 * Looks up names for one sandbox, each name once for everybody who waits for it. Whoever waits longer than `timeoutMs`
 * gets ETIMEDOUT.
 */
export function boundedLookups(resolve: Resolve, { timeoutMs }: { timeoutMs: number }): Resolve {
  const sandbox = new Gate();
  const shared = new SharedWork<readonly string[]>();
  return async (name) => {
    const timedOut = new AbortController();
    const timer = setTimeout(() => timedOut.abort(new LookupTimeout(name)), timeoutMs);
    const lookUp = (signal: AbortSignal) =>
      sandbox.pass(() => allSandboxes.pass(() => resolve(name), { width: MOST_OF_PROCESS, signal }), {
        width: MOST_OF_SANDBOX,
        signal,
      });
    try {
      return await shared.join(name, lookUp, timedOut.signal);
    } finally {
      clearTimeout(timer);
    }
  };
}

class LookupTimeout extends Error {
  readonly code = "ETIMEDOUT";

  constructor(name: string) {
    super(`the lookup of ${name} took too long`);
  }
}

const LENGTH_BYTES = 2;

/**
 * Answers DNS queries on a connection (RFC 7766): each has its length before it, and there may be many. The next one
 * is only read once the program has taken the answer.
 */
export async function answerStream(
  stream: Duplex,
  answer: (query: Buffer) => Promise<Buffer | null>,
  { timeoutMs }: { timeoutMs: number },
): Promise<void> {
  for (;;) {
    const length = await readExactly(stream, LENGTH_BYTES, timeoutMs);
    if (length === null) break;
    const query = await readExactly(stream, length.readUInt16BE(), timeoutMs);
    const text = query === null ? null : await answer(query);
    if (text === null) return reset(stream);
    const head = Buffer.alloc(LENGTH_BYTES);
    head.writeUInt16BE(text.length);
    if (!(await isWritten(stream, Buffer.concat([head, text])))) return reset(stream);
  }
  if (stream.readableEnded) stream.end();
  else reset(stream);
}

async function isWritten(stream: Duplex, data: Buffer): Promise<boolean> {
  return await new Promise((resolve) => {
    stream.write(data, (error) => resolve(!error));
  });
}

/** Names get 127.84.0.1 and following: nobody's server is there, and no program takes them for itself. */
const FIRST_ADDRESS = { prefix: "127.84", number: 1 };

interface NamedAddress {
  target: Target;
  address: string;
  listeners: Map<number, Promise<InsideListener | null>>;
}

type OnConnection = (connection: InsideConnection, endpoint: Endpoint) => void;

/** The addresses inside that stand for names, and the listeners on them. */
class NameAddresses {
  readonly #network: InsideNetwork;
  readonly #gate: EgressGate;
  readonly #onConnection: OnConnection;
  readonly #byName = new Map<string, NamedAddress>();

  constructor(network: InsideNetwork, gate: EgressGate, onConnection: OnConnection) {
    this.#network = network;
    this.#gate = gate;
    this.#onConnection = onConnection;
  }

  /** Gives an allowed name its address, and returns once programs can connect to it. */
  async find(name: string): Promise<NameAnswer> {
    const target = parseTarget(name);
    if (target?.kind !== "name" || portsOf(this.#gate.rules, target.name).length === 0)
      return { kind: "unknown" };
    const named = this.#byName.get(target.name) ?? this.#add(target);
    if (named === null) return { kind: "unavailable" };
    await this.#listen(named);
    return { kind: "address", address: named.address };
  }

  async close(): Promise<void> {
    const all = [...this.#byName.values()].flatMap(({ listeners }) => [...listeners.values()]);
    await Promise.all(all.map(async (listener) => await (await listener)?.close()));
  }

  #add(target: Target & { kind: "name" }): NamedAddress | null {
    if (this.#byName.size >= this.#gate.limits.maxNames) return null;
    const number = FIRST_ADDRESS.number + this.#byName.size;
    const address = `${FIRST_ADDRESS.prefix}.${number >> 8}.${number & 255}`;
    const named = { target, address, listeners: new Map() };
    this.#byName.set(target.name, named);
    return named;
  }

  async #listen(named: NamedAddress): Promise<void> {
    const { target, address, listeners } = named;
    if (target.kind !== "name") return;
    for (const port of portsOf(this.#gate.rules, target.name)) {
      if (listeners.has(port)) continue;
      const at: InsideAddress = { address, port };
      const listening = this.#network
        .listen(at, (connection) => this.#onConnection(connection, { target, port }))
        // A program inside was there first; connections are to it then, and never leave the sandbox.
        .catch(() => null);
      listeners.set(port, listening);
    }
    await Promise.all(listeners.values());
  }
}
