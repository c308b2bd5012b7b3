interface Waiting {
  position: number;
  start(): void;
}

/** Lets one question be asked at a time. The waiting question with the lowest position is next. */
export class QuestionQueue {
  readonly #waiting: Waiting[] = [];
  #isBusy = false;

  /** Rejects with the signal's reason if it is aborted before the question is asked. */
  async inTurn<T>(
    { position, signal }: { position: number; signal: AbortSignal | undefined },
    ask: () => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    if (this.#isBusy) await this.#turn(position, signal);
    this.#isBusy = true;
    try {
      signal?.throwIfAborted();
      return await ask();
    } finally {
      this.#next();
    }
  }

  #turn(position: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(signal?.reason);
      };
      const waiting: Waiting = {
        position,
        start() {
          signal?.removeEventListener("abort", leave);
          resolve();
        },
      };
      this.#waiting.push(waiting);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  /** Stays busy if a question waits, so that a new one cannot overtake it. */
  #next(): void {
    const [next] = this.#waiting.toSorted((a, b) => a.position - b.position);
    this.#isBusy = next !== undefined;
    if (next === undefined) return;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    next.start();
  }
}
