import { formatBytes } from "../../../lib/bytes.js";
import { busy, type Refusal } from "./refusal.js";

/** The memory that requests, outputs of commands and answers may take, all of them together. */
export class MemoryBudget {
  readonly limitBytes: number;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** The part of one request, which it has until it is disposed of. */
  share(): MemoryShare {
    let taken = 0;
    const set = (bytes: number) => {
      this.#usedBytes += bytes - taken;
      taken = bytes;
    };
    return {
      take: (bytes) => {
        if (this.#usedBytes + bytes > this.limitBytes) throw this.#full();
        set(taken + bytes);
      },
      giveBackTo: (bytes) => set(Math.min(taken, bytes)),
      get takenBytes() {
        return taken;
      },
      [Symbol.dispose]: () => set(0),
    };
  }

  #full(): Refusal {
    return busy(`requests, outputs and answers may take ${formatBytes(this.limitBytes)} together, and do`, {
      status: 429,
      retrySeconds: 1,
    });
  }
}

/** Whoever keeps something for a client takes the memory for it first, and so at most what was asked for. */
export interface MemoryShare extends Disposable {
  readonly takenBytes: number;
  /** Error: a refusal with 429, and then nothing more is taken. */
  take(bytes: number): void;
  /** Keeps only so much of what was taken. */
  giveBackTo(bytes: number): void;
}
