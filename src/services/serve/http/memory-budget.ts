import { formatBytes } from "../../../lib/bytes.js";
import { busy, type Refusal } from "./refusal.js";

export interface MemoryBudgetOptions {
  /** Whether several clients have to share it. Default: they have not. */
  isShared?: (() => boolean) | undefined;
  /** What the kept outputs of processes take of it. Default: nothing. */
  outputs?: { readonly usedBytes: number } | undefined;
}

/** The memory that requests, outputs of commands and answers may take, all of them together. */
export class MemoryBudget {
  readonly limitBytes: number;
  readonly #isShared: () => boolean;
  readonly #ofClients = new Map<string, number>();
  readonly #outputs: { readonly usedBytes: number };
  #usedBytes = 0;

  constructor(
    limitBytes: number,
    { isShared = () => false, outputs = { usedBytes: 0 } }: MemoryBudgetOptions = {},
  ) {
    this.limitBytes = limitBytes;
    this.#isShared = isShared;
    this.#outputs = outputs;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** The part of one request of a client, which it has until it is disposed of. */
  share(ofClient = ""): MemoryShare {
    let client = ofClient;
    let taken = 0;
    const set = (bytes: number) => {
      this.#usedBytes += bytes - taken;
      const sum = (this.#ofClients.get(client) ?? 0) + bytes - taken;
      if (sum > 0) this.#ofClients.set(client, sum);
      else this.#ofClients.delete(client);
      taken = bytes;
    };
    return {
      take: (bytes) => {
        this.#refuseTooMuch(client, bytes);
        set(taken + bytes);
      },
      giveBackTo: (bytes) => set(Math.min(taken, bytes)),
      ownedBy: (owner) => {
        const moved = taken;
        set(0);
        client = owner;
        set(moved);
      },
      get takenBytes() {
        return taken;
      },
      [Symbol.dispose]: () => set(0),
    };
  }

  #refuseTooMuch(client: string, bytes: number): void {
    const limit = formatBytes(this.limitBytes);
    const leftBytes = this.limitBytes - this.#outputs.usedBytes;
    if (this.#usedBytes + bytes > leftBytes)
      throw full(`requests, outputs and answers may take ${limit} together, and do`);
    if (!this.#isShared()) return;
    // As much as it has must be left for others: one client gets at most half, two of them a third each.
    const ofClient = this.#ofClients.get(client) ?? 0;
    const ofOthers = this.#usedBytes - ofClient;
    if (2 * (ofClient + bytes) > leftBytes - ofOthers)
      throw full(`requests, outputs and answers of this client have their share of ${limit}`);
  }
}

function full(message: string): Refusal {
  return busy(message, { status: 429, retrySeconds: 1 });
}

/** Whoever keeps something for a client takes the memory for it first, and so at most what was asked for. */
export interface MemoryShare extends Disposable {
  readonly takenBytes: number;
  /** Error: a refusal with 429, and then nothing more is taken. */
  take(bytes: number): void;
  /** Keeps only so much of what was taken. */
  giveBackTo(bytes: number): void;
  /** Counts it as this client's, which was not known at first. */
  ownedBy(client: string): void;
}
