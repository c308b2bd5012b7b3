import { beforeAbort } from "./before-abort.js";

/** Limits how many callers run at the same time. The others wait in order of arrival. */
export class Gate {
  #inside = 0;
  readonly #waiting: (() => void)[] = [];

  get isIdle(): boolean {
    return this.#inside === 0 && this.#waiting.length === 0;
  }

  /** Runs at once if fewer than `width` callers are running. An abort ends the wait. */
  async pass<T>(
    run: () => Promise<T>,
    { width, signal }: { width: number; signal?: AbortSignal | undefined },
  ): Promise<T> {
    signal?.throwIfAborted();
    if (this.#inside >= width) await this.#wait(signal);
    else this.#inside++;
    try {
      return await run();
    } finally {
      this.#leave();
    }
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#inside--;
    else next();
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    let enter: () => void = () => undefined;
    const turn = new Promise<void>((resolve) => {
      enter = resolve;
    });
    this.#waiting.push(enter);
    if (signal === undefined) return await turn;
    try {
      await beforeAbort(turn, signal);
    } catch (error) {
      const index = this.#waiting.indexOf(enter);
      // The turn had already come: pass it on.
      if (index === -1) this.#leave();
      else this.#waiting.splice(index, 1);
      throw error;
    }
  }
}

/**
 * Runs something for each item, for `width` of them at a time. After a failure none is begun any more, and this rejects once those that had
 * begun have ended: the caller may remove then what they work with.
 */
export async function someAtOnce<Item, Result>(
  items: readonly Item[],
  run: (item: Item, index: number) => Promise<Result>,
  { width, signal }: { width: number; signal?: AbortSignal | undefined },
): Promise<Result[]> {
  const results: Result[] = [];
  // A few workers take the items from one iterator. If each item waited at a gate instead, each would add a listener to the signal, and to add one
  // takes longer the more there are.
  const left = items.entries();
  let failure: { error: unknown } | null = null;
  const work = async () => {
    for (const [index, item] of left) {
      try {
        signal?.throwIfAborted();
        results[index] = await run(item, index);
      } catch (error) {
        failure ??= { error };
      }
      if (failure !== null) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, work));
  if (failure !== null) throw (failure as { error: unknown }).error;
  return results;
}
