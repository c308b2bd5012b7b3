import type { EgressGate } from "../gate.js";
import type { InsideAddress, InsideConnection, InsideListener, InsideNetwork } from "../inside-network.js";
import { type Endpoint, portsOf } from "../rules/decide.js";
import { parseTarget, type Target } from "../rules/target.js";
import type { NameAnswer } from "./name-server.js";

/** Names get 127.84.0.1 and following: nobody's server is there, and no program takes them for itself. */
const FIRST_ADDRESS = { prefix: "127.84", number: 1 };

interface NamedAddress {
  target: Target;
  address: string;
  listeners: Map<number, Promise<InsideListener | null>>;
}

type OnConnection = (connection: InsideConnection, endpoint: Endpoint) => void;

/** The addresses inside that stand for names, and the listeners on them. */
export class NameAddresses {
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
