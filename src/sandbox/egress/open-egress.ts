import { NAME_SERVER, PROXY_ADDRESS } from "./addresses.js";
import type { AskAboutHost } from "./ask-about-host.js";
import type { EgressAttempt, EgressPhase } from "./attempt.js";
import type { CanarySearch } from "./canaries/canary-search.js";
import type { Canary } from "./canaries/new-canary.js";
import { type Resolve, resolveOnHost } from "./dial.js";
import { EgressGate, type OnCanary } from "./gate.js";
import type { ConnectionOwner, InsideConnection, InsideNetwork } from "./inside-network.js";
import type { Inspection } from "./inspection.js";
import { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "./limits.js";
import { boundedLookups } from "./lookups.js";
import { NameAddresses } from "./names/name-addresses.js";
import { answerQuery } from "./names/name-server.js";
import { answerStream } from "./names/stream-queries.js";
import { HttpProxy } from "./proxy/http-proxy.js";
import { serveConnection } from "./proxy/serve-connection.js";
import { shownHost } from "./rules/target.js";
import { reset } from "./tunnel/join.js";
import { openTunnel } from "./tunnel/open-tunnel.js";
import type { UpstreamProxy } from "./upstream/read-upstream.js";

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
