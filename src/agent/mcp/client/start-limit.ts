const MAX_STARTS = 3;
const MINUTE_MS = 60_000;

/** Allows three starts of a server in a minute, for servers that end again and again. */
export class StartLimit {
  readonly max = MAX_STARTS;
  readonly #clock: () => number;
  #starts: number[] = [];

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  mayStart(): boolean {
    const now = this.#clock();
    this.#starts = this.#starts.filter((at) => now - at < MINUTE_MS);
    if (this.#starts.length >= MAX_STARTS) return false;
    this.#starts.push(now);
    return true;
  }
}
