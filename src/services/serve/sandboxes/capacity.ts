import { AnySignal } from "../../../lib/time/any-signal.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import { busy, ending } from "../http/refusal.js";

export interface CapacityLimits {
  /** Places for sandboxes and episodes at the same time. */
  maxPlaces: number;
  /** Of them, for one client. */
  maxPerClient: number;
  /** How many may wait for a place. */
  maxWaiting: number;
}

const RETRY_SECONDS = 5;

interface Waiter {
  client: string;
  enter(): void;
}

/** The places for sandboxes. Whoever finds none waits in order, or is sent away. */
export class Capacity {
  readonly limits: CapacityLimits;
  readonly #drain: AbortSignal;
  readonly #taken = new Map<string, number>();
  readonly #waiting: Waiter[] = [];

  /** Once `drain` is aborted, nobody waits any more. Default: never. */
  constructor(limits: CapacityLimits, drain: AbortSignal = new AbortController().signal) {
    this.limits = limits;
    this.#drain = drain;
  }

  get takenCount(): number {
    return [...this.#taken.values()].reduce((sum, count) => sum + count, 0);
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** The clients that have places, or wait for one. */
  get uses(): { client: string; taken: number; waiting: number }[] {
    const clients = new Set([...this.#taken.keys(), ...this.#waiting.map(({ client }) => client)]);
    return [...clients].map((client) => ({
      client,
      taken: this.#taken.get(client) ?? 0,
      waiting: this.#waiting.filter((waiter) => waiter.client === client).length,
    }));
  }

  /**
   * Takes a place until it is disposed of, which may be done twice. Errors: a refusal with 429 when there is none,
   * after `waitMs`, and with 503 when the service is being ended meanwhile; the signal's reason.
   */
  async take(
    client: string,
    { waitMs, signal }: { waitMs: number; signal: AbortSignal },
  ): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#hasRoom(client)) return this.hold(client);
    await this.#wait(client, { waitMs, signal });
    return this.#seat(client);
  }

  /** Takes a place, even if there is none, for what is there already. */
  hold(client: string): Disposable {
    this.#enter(client);
    return this.#seat(client);
  }

  #seat(client: string): Disposable {
    let isTaken = true;
    return {
      [Symbol.dispose]: () => {
        if (isTaken) this.#leave(client);
        isTaken = false;
      },
    };
  }

  #hasRoom(client: string): boolean {
    const { maxPlaces, maxPerClient } = this.limits;
    return this.takenCount < maxPlaces && (this.#taken.get(client) ?? 0) < maxPerClient;
  }

  #enter(client: string): void {
    this.#taken.set(client, (this.#taken.get(client) ?? 0) + 1);
  }

  #leave(client: string): void {
    const left = (this.#taken.get(client) ?? 0) - 1;
    if (left > 0) this.#taken.set(client, left);
    else this.#taken.delete(client);
    const at = this.#waiting.findIndex((waiter) => this.#hasRoom(waiter.client));
    if (at < 0) return;
    const [next] = this.#waiting.splice(at, 1);
    next?.enter();
  }

  async #wait(client: string, { waitMs, signal }: { waitMs: number; signal: AbortSignal }): Promise<void> {
    if (waitMs === 0) throw this.#full();
    if (this.#waiting.length >= this.limits.maxWaiting)
      throw busy(`${this.limits.maxWaiting} requests wait for a place already`, {
        status: 429,
        retrySeconds: RETRY_SECONDS,
      });
    const waiter: Waiter = { client, enter: () => undefined };
    const turn = new Promise<void>((resolve) => {
      waiter.enter = () => {
        this.#enter(client);
        resolve();
      };
    });
    this.#waiting.push(waiter);
    using either = new AnySignal([signal, this.#drain]);
    using limit = new TimeLimit(waitMs, either.signal);
    try {
      await beforeAbort(turn, limit.signal);
    } catch (error) {
      const at = this.#waiting.indexOf(waiter);
      if (at >= 0) this.#waiting.splice(at, 1);
      // Its turn has come at the very moment of the abort.
      else this.#leave(client);
      if (limit.isOver) throw this.#full();
      throw signal.aborted ? error : ending();
    }
  }

  #full() {
    const { maxPlaces, maxPerClient } = this.limits;
    return busy(`all places are taken: there are ${maxPlaces}, and ${maxPerClient} for one client`, {
      status: 429,
      retrySeconds: RETRY_SECONDS,
    });
  }
}
