import { Refusal } from "../http/refusal.js";

export interface UsedMinutesOptions {
  /** How many minutes of a day a client has; undefined for all. Asked again and again, as it may change. */
  limitOf: (client: string) => number | undefined;
  /** Called when a client that uses some has used all, again every minute until it uses none. */
  onUsedUp: (client: string) => void;
  /** What an earlier service has counted. Of another day it is nothing. Default: nothing. */
  before?: CountedDay | null | undefined;
  /** Called when there may be more to know of the day, at least once in a minute in which there are sandboxes. */
  onCount?: (() => void) | undefined;
  /** As `Date.now()` counts. */
  now?: (() => number) | undefined;
}

/** How long the sandboxes of each client have been there on one day, which is counted from 1970 on. */
export interface CountedDay {
  day: number;
  usedMs: ReadonlyMap<string, number>;
}

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;

interface Use {
  /** How many sandboxes there are. */
  count: number;
  /** Up to when `usedMs` counts. */
  countedAt: number;
  usedMs: number;
  timer: NodeJS.Timeout | undefined;
}

/** For how long the sandboxes of each client have been there since the day began (UTC), all of a client together. */
export class UsedMinutes {
  readonly #options: UsedMinutesOptions;
  readonly #now: () => number;
  readonly #uses = new Map<string, Use>();

  constructor(options: UsedMinutesOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    const now = this.#now();
    if (options.before?.day !== dayOf(now)) return;
    for (const [client, usedMs] of options.before.usedMs)
      this.#uses.set(client, { count: 0, countedAt: now, usedMs, timer: undefined });
  }

  get countedDay(): CountedDay {
    const used = [...this.#uses.keys()].map((client): [string, number] => [
      client,
      this.#counted(client)?.usedMs ?? 0,
    ]);
    return { day: dayOf(this.#now()), usedMs: new Map(used.filter(([, usedMs]) => usedMs > 0)) };
  }

  usedBy(client: string): number {
    return (this.#counted(client)?.usedMs ?? 0) / MINUTE_MS;
  }

  /** Error: a refusal with 429 until the next day. */
  refuseUsedUp(client: string): void {
    const limit = this.#options.limitOf(client);
    if (limit === undefined || this.usedBy(client) < limit) return;
    const leftMs = DAY_MS - (this.#now() % DAY_MS);
    throw new Refusal(`the sandboxes of this client have used their ${limit} minutes of the day`, {
      status: 429,
      code: "serve.quota",
      hint: "come again tomorrow, as UTC counts the days",
      headers: { "retry-after": `${Math.ceil(leftMs / 1000)}` },
    });
  }

  /** Counts the minutes of one sandbox until it is disposed of. */
  begin(client: string): Disposable {
    const use = this.#counted(client) ?? {
      ...{ count: 0, countedAt: this.#now(), usedMs: 0, timer: undefined },
    };
    this.#uses.set(client, use);
    use.count++;
    this.#watch(client, use);
    let isCounted = true;
    return {
      [Symbol.dispose]: () => {
        if (!isCounted) return;
        isCounted = false;
        this.#counted(client);
        use.count--;
        this.#watch(client, use);
      },
    };
  }

  #counted(client: string): Use | undefined {
    const use = this.#uses.get(client);
    if (use === undefined) return undefined;
    const now = this.#now();
    const dayBegan = now - (now % DAY_MS);
    if (use.countedAt < dayBegan) {
      use.usedMs = 0;
      use.countedAt = dayBegan;
    }
    use.usedMs += use.count * Math.max(0, now - use.countedAt);
    use.countedAt = now;
    return use;
  }

  #watch(client: string, use: Use): void {
    this.#options.onCount?.();
    clearTimeout(use.timer);
    if (use.count === 0) return;
    const limit = this.#options.limitOf(client);
    const leftMs = limit === undefined ? MINUTE_MS : (limit * MINUTE_MS - use.usedMs) / use.count;
    use.timer = setTimeout(
      () => {
        const now = this.#options.limitOf(client);
        if (now !== undefined && this.usedBy(client) >= now) this.#options.onUsedUp(client);
        else this.#counted(client);
        this.#watch(client, use);
      },
      leftMs > 0 ? Math.min(Math.ceil(leftMs), MINUTE_MS) : MINUTE_MS,
    ).unref();
  }
}

function dayOf(now: number): number {
  return Math.floor(now / DAY_MS);
}
