import type { Socket } from "node:net";
import { HOST_NAME, normalAddress } from "../policy/hosts.js";
import type { AskAboutHost, EgressAttempt, EgressOutcome, EgressPhase, EgressWay } from "./attempt.js";
import type { CanarySearch } from "./canaries/canary-search.js";
import { dial, ownAddresses, type Resolve } from "./dial.js";
import type { ConnectionOwner } from "./inside-network.js";
import type { Inspection } from "./inspection.js";
import { reset } from "./join.js";
import type { UpstreamProxy } from "./read-upstream.js";
import {
  decideAddress,
  decideTarget,
  type EgressRule,
  type Endpoint,
  namesAddress,
  type OwnAddresses,
  onceAsked,
  rulesOf,
  type TargetDecision,
} from "./rules/decide.js";
import type { Denial } from "./rules/denial.js";
import { describeEndpoint, hostOf, scopeOf } from "./rules/target.js";
import type { ConnectedTls } from "./tls/connect-tls.js";

export type Opened =
  | { kind: "open"; socket: Socket; rule: string; anyProtocol: boolean; upstream: UpstreamProxy | null }
  | { kind: "denied"; denial: Denial; rule: string | null }
  | { kind: "failed"; errno: string; rule: string };

/** Stands in the record in place of the entry of the allow-list. */
const ALLOWED_ONCE = "allowed once by the user";

/** Recorded outcome for a target that was not reached. */
export function outcomeOf(opened: Exclude<Opened, { kind: "open" }>): EgressOutcome {
  if (opened.kind === "denied") return { kind: "denied", denial: opened.denial };
  return { kind: "failed", errno: opened.errno };
}

/** The program that makes an attempt, and its way of connecting. */
export interface Attempting {
  way: EgressWay;
  owner: Promise<ConnectionOwner | null>;
}

/** Called when a program is about to send a canary. */
export type OnCanary = (sent: { name: string; host: string; owner: Attempting["owner"] }) => void;

interface GateOptions {
  canaries: CanarySearch | null;
  onCanary: OnCanary;
  hosts: readonly string[];
  limits: EgressLimits;
  inspection: Inspection | null;
  resolve: Resolve;
  onAttempt: (attempt: EgressAttempt) => void;
  upstream: UpstreamProxy | null;
}

/** The only place that connects to anything, and that knows the rules of the moment. */
export class EgressGate {
  readonly limits: EgressLimits;
  /** Null if there are no rules for requests and no secrets. */
  readonly inspection: Inspection | null;
  /** Null if there are none. */
  readonly canaries: CanarySearch | null;
  readonly #onCanary: OnCanary;
  /** The name of the canary that a program has tried to send: nothing is reached from then on. */
  #sentCanary: string | null = null;
  readonly #resolve: Resolve;
  readonly #onAttempt: (attempt: EgressAttempt) => void;
  readonly #live = new Map<Socket, { endpoint: Endpoint; onCut: (denial: Denial) => void }>();
  /** Endpoints of connections that the user has allowed once. */
  #allowedOnce = new WeakSet<Endpoint>();
  /** Null: nobody is asked. */
  ask: AskAboutHost | null = null;
  readonly #upstream: UpstreamProxy | null;
  /** Connections of which only the proxy knows where they lead. */
  readonly #chained = new WeakSet<Socket>();
  #rules: readonly EgressRule[];
  /** Phase of attempts that begin now. */
  #phase: EgressPhase = "run";
  #isClosed = false;

  constructor({ hosts, limits, inspection, canaries, resolve, upstream, ...listeners }: GateOptions) {
    this.canaries = canaries;
    this.#onCanary = listeners.onCanary;
    this.limits = limits;
    this.inspection = inspection;
    this.#resolve = resolve;
    this.#onAttempt = listeners.onAttempt;
    this.#upstream = upstream;
    this.#rules = rulesOf(hosts);
  }

  get rules(): readonly EgressRule[] {
    return this.#rules;
  }

  /** Connections to what is no longer allowed are cut. */
  setHosts(hosts: readonly string[], phase: EgressPhase): void {
    this.#phase = phase;
    if (this.#sentCanary !== null) return;
    this.#rules = rulesOf(hosts);
    this.#allowedOnce = new WeakSet();
    const own = onceAsked(ownAddresses);
    for (const [socket, { endpoint, onCut }] of this.#live) {
      if (this.#stillAllows(endpoint, socket, own)) continue;
      onCut({ kind: "rules-changed" });
      reset(socket);
    }
  }

  decide(endpoint: Endpoint): TargetDecision {
    const canary = this.canaries?.findInName(hostOf(endpoint.target)) ?? null;
    if (canary !== null) return { kind: "denied", denial: { kind: "canary", name: canary, isLeak: true } };
    if (this.#sentCanary !== null)
      return { kind: "denied", denial: { kind: "canary", name: this.#sentCanary, isLeak: false } };
    const decision = decideTarget(this.#rulesFor(endpoint), endpoint, ownAddresses);
    const isUnnamed = isPublicAddress(endpoint) && !namesAddress(this.#rules, endpoint);
    if (this.inspection?.hasRules === true && isUnnamed)
      return { kind: "denied", denial: { kind: "bare-address" } };
    return decision;
  }

  #rulesFor(endpoint: Endpoint): readonly EgressRule[] {
    if (!this.#allowedOnce.has(endpoint)) return this.#rules;
    const once = rulesOf([describeEndpoint(endpoint)]).map((rule) => ({ ...rule, origin: ALLOWED_ONCE }));
    return [...this.#rules, ...once];
  }

  /** Asks the user if no rule matches, but never about addresses that are not public: they are easily more than they seem. */
  async #decideOrAsk(endpoint: Endpoint, owner: Attempting["owner"]): Promise<TargetDecision> {
    const decision = this.decide(endpoint);
    const { target } = endpoint;
    if (decision.kind !== "denied" || decision.denial.kind !== "no-rule" || this.ask === null)
      return decision;
    if (target.kind === "address" && !isPublicAddress(endpoint)) return decision;
    const host = describeEndpoint(endpoint);
    const isOwnMachine = target.kind === "name" && target.name === HOST_NAME;
    const answer = await this.ask({ host, isOwnMachine, owner: await owner });
    if (this.#isClosed || answer.kind === "not-asked") return this.decide(endpoint);
    if (answer.kind === "declined") return { kind: "denied", denial: answer };
    if (answer.kind === "once") this.#allowedOnce.add(endpoint);
    else if (this.decide(endpoint).kind === "denied") this.#rules = [...this.#rules, ...rulesOf([host])];
    return this.decide(endpoint);
  }

  /**
   * Decides and connects. Resolves once it is known whose the attempt is, too: a program that has its answer may be
   * gone the next moment. `isPlainHttp`: for one request of plain HTTP, which goes to `upstream` as it is, if there is one.
   */
  async open(
    endpoint: Endpoint,
    { owner, isPlainHttp = false }: Attempting & { isPlainHttp?: boolean },
  ): Promise<Opened> {
    const [opened] = await Promise.all([this.#connect(endpoint, { owner, isPlainHttp }), owner]);
    return opened;
  }

  async #connect(
    endpoint: Endpoint,
    { owner, isPlainHttp }: Pick<Attempting, "owner"> & { isPlainHttp: boolean },
  ): Promise<Opened> {
    const decision = await this.#decideOrAsk(endpoint, owner);
    const own = onceAsked(ownAddresses);
    if (decision.kind === "denied") return { ...decision, rule: null };
    const { rule, anyProtocol } = decision;
    const dialled = await dial(endpoint, {
      rules: this.#rulesFor(endpoint),
      resolve: this.#resolve,
      ownAddresses: own,
      connectTimeoutMs: this.limits.connectTimeoutMs,
      upstream: this.#upstream,
      isPlainHttp,
    });
    if (dialled.kind !== "connected") return { ...dialled, rule };
    if (dialled.upstream !== null) this.#chained.add(dialled.socket);
    // The rules may have changed while the host was dialled.
    if (!this.#isClosed && this.#stillAllows(endpoint, dialled.socket, own))
      return { ...dialled, kind: "open", rule, anyProtocol };
    dialled.socket.destroy();
    return { kind: "denied", denial: this.#whyCut(), rule: null };
  }

  /** Speaks TLS on in an open connection to a host that is inspected. */
  async secure(socket: Socket, endpoint: Endpoint): Promise<ConnectedTls> {
    if (this.inspection === null) {
      socket.destroy();
      return { kind: "failed", errno: "ECANCELED" };
    }
    const secured = await this.inspection.connect(socket, endpoint, this.limits.connectTimeoutMs);
    if (secured.kind === "connected" && this.#chained.has(socket)) this.#chained.add(secured.socket);
    return secured;
  }

  /** Whether the rules of the moment allow an open connection, without anybody being asked. */
  allows(socket: Socket, endpoint: Endpoint): boolean {
    return !this.#isClosed && this.#stillAllows(endpoint, socket, ownAddresses);
  }

  #stillAllows(endpoint: Endpoint, socket: Socket, own: OwnAddresses): boolean {
    if (this.#sentCanary !== null || decideTarget(this.#rulesFor(endpoint), endpoint, own).kind === "denied")
      return false;
    if (this.#chained.has(socket)) return true;
    const address = normalAddress(socket.remoteAddress ?? "");
    // A socket without an address is closed already.
    if (address === null) return true;
    return decideAddress(this.#rulesFor(endpoint), { ...endpoint, address, ownAddresses: own }) === null;
  }

  /**
   * Cuts the connection when the rules no longer allow it, or the gate is closed. If that has happened since it was
   * opened, it is cut now, and this returns why; `onCut` is not called then.
   */
  watch(socket: Socket, endpoint: Endpoint, onCut: (denial: Denial) => void): Denial | null {
    // A socket that is closed already would never report its closing.
    if (socket.closed) return null;
    const isNew = !this.#live.has(socket);
    if (isNew && !this.allows(socket, endpoint)) {
      reset(socket);
      return this.#whyCut();
    }
    if (isNew) socket.once("close", () => this.#live.delete(socket));
    this.#live.set(socket, { endpoint, onCut });
    return null;
  }

  #whyCut(): Denial {
    const name = this.#sentCanary;
    return name === null ? { kind: "rules-changed" } : { kind: "canary", name, isLeak: false };
  }

  /** `record` is called once the attempt has ended. Whose it is is known by then. */
  begin({ way, owner }: Attempting, asked: AskedFor): RecordAttempt {
    const startedAtMs = Date.now();
    const phase = this.#phase;
    return async (given, { rule = null, bytesOut = 0, bytesIn = 0 } = {}) => {
      const outcome = this.#withCanary(given, asked);
      if (outcome.kind === "denied" && outcome.denial.kind === "canary" && outcome.denial.isLeak)
        this.#trip(outcome.denial.name, { host: asked.host, owner });
      const attempt: EgressAttempt = {
        ...{ startedAtMs, phase, way, method: null, path: null, ...asked, outcome, rule, bytesOut, bytesIn },
        durationMs: Date.now() - startedAtMs,
        owner: await owner,
      };
      this.#onAttempt(attempt);
    };
  }

  /** Names the canary in a refused attempt, also if it was refused for another reason. */
  #withCanary(outcome: EgressOutcome, { host, path }: AskedFor): EgressOutcome {
    if (this.canaries === null || outcome.kind !== "denied" || outcome.denial.kind === "canary")
      return outcome;
    const { denial } = outcome;
    const names = denial.kind === "other-name" ? [host, denial.name] : [host];
    const found = names.map((name) => this.canaries?.findInName(name)).find((name) => name);
    const name = found ?? this.canaries.findInTexts([path ?? ""]);
    return name === null ? outcome : { kind: "denied", denial: { kind: "canary", name, isLeak: true } };
  }

  #trip(name: string, { host, owner }: { host: string; owner: Attempting["owner"] }): void {
    if (this.#sentCanary !== null) return;
    this.#sentCanary = name;
    this.#rules = [];
    this.ask = null;
    for (const [socket, { onCut }] of this.#live) {
      onCut({ kind: "canary", name, isLeak: false });
      reset(socket);
    }
    this.#onCanary({ name, host, owner });
  }

  close(): void {
    this.#isClosed = true;
    this.#rules = [];
    for (const socket of this.#live.keys()) reset(socket);
  }
}

function isPublicAddress({ target }: Endpoint): boolean {
  return target.kind === "address" && scopeOf(target.address) === "public";
}

interface AskedFor {
  host: string;
  port: number | null;
  method?: string | null;
  path?: string | null;
}

export type RecordAttempt = (
  outcome: EgressOutcome,
  details?: { rule?: string | null; bytesOut?: number; bytesIn?: number },
) => Promise<void>;

/** Limits that keep programs in a sandbox, and the servers that they reach, from using up the host. */
export interface EgressLimits {
  /** Connections of one sandbox at the same time. More are reset at once. Default 1024. */
  maxConnections: number;
  /** Names that one sandbox may use without a proxy. Each gets an address inside. Default 256. */
  maxNames: number;
  /** Time limit for looking up a name, and then for connecting to each of its addresses. Default 30 seconds. */
  connectTimeoutMs: number;
  /** Time limit for a program to send the head of each request. Default 30 seconds. */
  headTimeoutMs: number;
  /** How long a plain HTTP request may go on without a byte in either direction. Default 5 minutes. */
  idleTimeoutMs: number;
}

export const DEFAULT_EGRESS_LIMITS: EgressLimits = {
  maxConnections: 1024,
  maxNames: 256,
  connectTimeoutMs: 30_000,
  headTimeoutMs: 30_000,
  idleTimeoutMs: 300_000,
};
