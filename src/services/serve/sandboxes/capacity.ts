import { AnySignal } from "../../../lib/time/any-signal.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import { busy, ending, type Refusal } from "../http/refusal.js";
import type { ClientQuota } from "../http/served-client.js";
import type { MachineRoom, Need, TakenRoom } from "./machine-room.js";
import type { MinutesFile } from "./minutes-file.js";
import { refuseNeverAllowed, shortageOfQuota } from "./quota.js";
import { UsedMinutes } from "./used-minutes.js";

export interface CapacityLimits {
  /** Places for sandboxes and episodes at the same time. */
  maxPlaces: number;
  /** Of them, for one client. */
  maxPerClient: number;
  /** How many may wait for a place. */
  maxWaiting: number;
}

export interface CapacityOptions {
  /** Once it is aborted, nobody waits any more. Default: never. */
  drain?: AbortSignal | undefined;
  /** What a client may have besides. Default: nothing else is limited. */
  quotaOf?: ((client: string) => ClientQuota) | undefined;
  /** What the engine's machine has. Default: it is not looked at. */
  room?: MachineRoom | undefined;
  /** Where the minutes of clients are kept for a later service. Default: nowhere. */
  minutes?: MinutesFile | undefined;
  /** Called when a client that has places has used the minutes of its day. */
  onUsedUp?: ((client: string) => void) | undefined;
}

export interface TakeOptions {
  waitMs: number;
  signal: AbortSignal;
  /** What is to run in the place. Default: nothing that counts. */
  need?: Need | undefined;
}

const RETRY_SECONDS = 5;
/** How often the machine is looked at again while somebody waits for room. */
const LOOK_EVERY_MS = 1000;
/** So many others may go before one that waits for room of the machine; then it is the next. */
const MAX_PASSED = 16;

const nothing: Need = { cpus: 0, memoryMb: 0, limits: { cpus: 0, memoryMb: 0 } };

interface Waiter {
  client: string;
  need: Need;
  /** Whether it stays when it does not get its place at once. */
  waits: boolean;
  /** Why it does not have its place yet. */
  reason: Refusal | null;
  /** Whether that is the machine's room. */
  waitsForRoom: boolean;
  /** How many of others have gone before it meanwhile. */
  passed: number;
  isIn: boolean;
  enter(): void;
  refuse(reason: unknown): void;
}

/** The reason of whoever has waited long enough. */
const waitedLong = new Error("there was no place in time");

/**
 * The places for sandboxes. Whoever finds none waits, or is sent away. The next place is that of the client that has the fewest; among
 * equal ones, of the one whose last place is longest ago.
 */
export class Capacity {
  readonly limits: CapacityLimits;
  readonly #options: CapacityOptions;
  readonly #minutes: UsedMinutes;
  readonly #taken = new Map<string, Set<TakenRoom>>();
  /** In the order in which they came. */
  readonly #waiting: Waiter[] = [];
  #givenCount = 0;
  /** The number of the last place of each client that has one, or waits for one. */
  readonly #lastGiven = new Map<string, number>();
  #giving: Promise<void> | null = null;
  #isChanged = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: CapacityLimits, options: CapacityOptions = {}) {
    this.limits = limits;
    this.#options = options;
    this.#minutes = new UsedMinutes({
      limitOf: (client) => this.#quotaOf(client).minutesPerDay,
      onUsedUp: (client) => options.onUsedUp?.(client),
      before: options.minutes?.before,
      onCount: () => options.minutes?.keep(() => this.#minutes.countedDay),
    });
  }

  get takenCount(): number {
    return this.#places().length;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** What a client has at the moment, and the minutes that its sandboxes have had of the day. */
  usedBy(client: string): { places: number; cpus: number; memoryMb: number; minutes: number } {
    const limits = [...(this.#taken.get(client) ?? [])].map(({ need }) => need.limits);
    return {
      places: limits.length,
      cpus: limits.reduce((sum, { cpus }) => sum + cpus, 0),
      memoryMb: limits.reduce((sum, { memoryMb }) => sum + memoryMb, 0),
      minutes: this.#minutes.usedBy(client),
    };
  }

  /** The clients that have places, or wait for one: what they have, and what they may have. */
  get uses(): (ReturnType<Capacity["usedBy"]> & { client: string; waiting: number; quota: ClientQuota })[] {
    const clients = new Set([...this.#taken.keys(), ...this.#waiting.map(({ client }) => client)]);
    return [...clients].map((client) => ({
      ...{ client, ...this.usedBy(client), quota: this.#quotaOf(client) },
      waiting: this.#waiting.filter((waiter) => waiter.client === client).length,
    }));
  }

  /**
   * Takes a place until it is disposed of, which may be done twice. Errors: a refusal with 429 when there is none,
   * after `waitMs`, with 503 when the service is being ended meanwhile, and with 403 for what the client may never have; the signal's reason.
   */
  async take(client: string, { waitMs, signal, need = nothing }: TakeOptions): Promise<Disposable> {
    signal.throwIfAborted();
    refuseNeverAllowed(need, this.#quotaOf(client));
    await this.#options.room?.refuseTooMuch(need);
    this.#minutes.refuseUsedUp(client);
    const place = { need, since: 0 };
    await this.#enter(client, place, { waitMs, signal });
    return this.#seat(client, place);
  }

  /** Takes a place, even if there is none, for what is there already. */
  hold(client: string, need: Need = nothing): Disposable {
    const place = { need, since: 0 };
    this.#put(client, place);
    return this.#seat(client, place);
  }

  #seat(client: string, place: TakenRoom): Disposable {
    const counted = this.#minutes.begin(client);
    return {
      [Symbol.dispose]: () => {
        counted[Symbol.dispose]();
        this.#leave(client, place);
      },
    };
  }

  async #enter(client: string, place: TakenRoom, { waitMs, signal }: TakeOptions): Promise<void> {
    const waiter: Waiter = {
      ...{ client, need: place.need, waits: waitMs > 0 },
      ...{ reason: null, waitsForRoom: false, passed: 0, isIn: false },
      enter: () => undefined,
      refuse: () => undefined,
    };
    const turn = new Promise<void>((resolve, reject) => {
      waiter.enter = () => {
        waiter.isIn = true;
        this.#put(client, place);
        resolve();
      };
      waiter.refuse = reject;
    });
    turn.catch(() => undefined);
    this.#waiting.push(waiter);
    try {
      if (waiter.waits) this.#refuseTooMany();
      await this.#give();
      if (!waiter.waits && this.#waiting.includes(waiter)) throw waitedLong;
      if (waiter.waits) await this.#wait(turn, { waitMs, signal });
      else await turn;
    } catch (error) {
      // Its turn may have come at the very moment of the abort.
      if (waiter.isIn) this.#leave(client, place);
      else this.#remove(waiter);
      throw error === waitedLong ? (waiter.reason ?? this.#full()) : error;
    }
  }

  #put(client: string, place: TakenRoom): void {
    place.since = performance.now();
    this.#taken.set(client, (this.#taken.get(client) ?? new Set()).add(place));
    this.#givenCount++;
    this.#lastGiven.set(client, this.#givenCount);
  }

  async #wait(turn: Promise<void>, { waitMs, signal }: TakeOptions): Promise<void> {
    const { drain = new AbortController().signal } = this.#options;
    using either = new AnySignal([signal, drain]);
    using limit = new TimeLimit(waitMs, either.signal);
    try {
      await beforeAbort(turn, limit.signal);
    } catch (error) {
      if (limit.isOver) throw waitedLong;
      if (!either.signal.aborted) throw error;
      throw signal.aborted ? error : ending();
    }
  }

  /** When too many wait, the latest of the client of which most wait is sent away. */
  #refuseTooMany(): void {
    const waiting = this.#waiting.filter(({ waits }) => waits);
    if (waiting.length <= this.limits.maxWaiting) return;
    const counts = new Map<string, number>();
    for (const { client } of waiting) counts.set(client, (counts.get(client) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const last = waiting.findLast(({ client }) => counts.get(client) === most);
    if (last === undefined) return;
    this.#remove(last);
    last.refuse(
      busy(`${this.limits.maxWaiting} requests wait for a place already`, {
        status: 429,
        retrySeconds: RETRY_SECONDS,
      }),
    );
  }

  #leave(client: string, place: TakenRoom): void {
    const places = this.#taken.get(client);
    if (places?.delete(place) !== true) return;
    if (places.size === 0) this.#taken.delete(client);
    this.#forget(client);
    void this.#give();
  }

  #remove(waiter: Waiter): void {
    const at = this.#waiting.indexOf(waiter);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    this.#forget(waiter.client);
    // Others may have waited behind it.
    void this.#give();
  }

  #forget(client: string): void {
    if (!this.#taken.has(client) && !this.#waiting.some((waiter) => waiter.client === client))
      this.#lastGiven.delete(client);
  }

  /** Gives all places that can be given. Resolves when everybody who waits has been looked at. */
  async #give(): Promise<void> {
    this.#isChanged = true;
    this.#giving ??= (async () => {
      try {
        while (this.#isChanged) {
          this.#isChanged = false;
          await this.#giveNext();
        }
      } finally {
        // At once, so that nobody waits for a round that is over.
        this.#giving = null;
      }
    })();
    await this.#giving;
  }

  /** Gives one place, if there is one for anybody. */
  async #giveNext(): Promise<void> {
    clearTimeout(this.#timer);
    const firsts = this.#firstOfEach();
    for (const waiter of firsts) {
      waiter.waitsForRoom = false;
      waiter.reason = this.#shortageFor(waiter);
      if (waiter.reason !== null) continue;
      try {
        waiter.reason = (await this.#options.room?.shortage(waiter.need, this.#places())) ?? null;
      } catch (error) {
        // The engine does not say what its machine has.
        waiter.refuse(error);
        this.#remove(waiter);
      }
      // It may have left meanwhile.
      if (!this.#waiting.includes(waiter)) continue;
      if (waiter.reason === null) return this.#giveTo(waiter, firsts);
      waiter.waitsForRoom = true;
      if (waiter.passed >= MAX_PASSED) break;
    }
    // What others use of the machine changes without notice.
    if (firsts.some(({ waitsForRoom }) => waitsForRoom))
      this.#timer = setTimeout(() => void this.#give(), LOOK_EVERY_MS).unref();
  }

  #giveTo(waiter: Waiter, firsts: readonly Waiter[]): void {
    this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
    for (const other of firsts) if (other.waitsForRoom) other.passed++;
    waiter.enter();
    this.#isChanged = true;
  }

  /** The first who waits of each client, the one first who gets the next place. */
  #firstOfEach(): Waiter[] {
    const firsts = new Map<string, Waiter>();
    for (const waiter of this.#waiting) if (!firsts.has(waiter.client)) firsts.set(waiter.client, waiter);
    const placesOf = ({ client }: Waiter) => this.#taken.get(client)?.size ?? 0;
    const lastOf = ({ client }: Waiter) => this.#lastGiven.get(client) ?? 0;
    return [...firsts.values()].toSorted(
      (one, other) => placesOf(one) - placesOf(other) || lastOf(one) - lastOf(other),
    );
  }

  #shortageFor({ client, need }: Waiter): Refusal | null {
    const used = this.usedBy(client);
    if (this.takenCount >= this.limits.maxPlaces || used.places >= this.limits.maxPerClient)
      return this.#full();
    return shortageOfQuota(need, used, this.#quotaOf(client));
  }

  #places(): TakenRoom[] {
    return [...this.#taken.values()].flatMap((places) => [...places]);
  }

  #quotaOf(client: string): ClientQuota {
    return this.#options.quotaOf?.(client) ?? {};
  }

  #full(): Refusal {
    const { maxPlaces, maxPerClient } = this.limits;
    return busy(`all places are taken: there are ${maxPlaces}, and ${maxPerClient} for one client`, {
      status: 429,
      retrySeconds: RETRY_SECONDS,
    });
  }
}
