/** What paths lead to; see `realPaths`. */
export type RealPaths = (paths: readonly string[]) => Promise<readonly string[]>;

interface Hold {
  paths: readonly string[];
  /** Asked for when somebody else comes. */
  names: Promise<readonly string[]> | undefined;
  over: Promise<unknown>;
}

/**
 * Lets actions on different files run together, and those that share one, or a directory and what is in it, one after the other in
 * the order of their calls. One that is alone starts at once: where its paths lead is only looked up when there is another.
 */
export class PathLocks {
  readonly #realPaths: RealPaths;
  readonly #holds = new Set<Hold>();

  constructor(realPaths: RealPaths) {
    this.#realPaths = realPaths;
  }

  run<T>(paths: readonly string[], action: () => Promise<T>): Promise<T> {
    const before = [...this.#holds];
    const hold: Hold = { paths, names: undefined, over: Promise.resolve() };
    const result = (before.length === 0 ? Promise.resolve() : this.#awaitSharing(hold, before)).then(action);
    const forget = () => this.#holds.delete(hold);
    hold.over = result.then(forget, forget);
    this.#holds.add(hold);
    return result;
  }

  async #awaitSharing(hold: Hold, before: readonly Hold[]): Promise<void> {
    const names = await this.#namesOf(hold);
    const waits = before.map(async (other) => {
      if (share(names, await this.#namesOf(other))) await other.over;
    });
    await Promise.all(waits);
  }

  /** A path that cannot be looked up is taken as it is written; the action will say what is wrong with it. */
  #namesOf(hold: Hold): Promise<readonly string[]> {
    hold.names ??= this.#realPaths(hold.paths).then(
      (real) => [...hold.paths, ...real],
      () => hold.paths,
    );
    return hold.names;
  }
}

function share(some: readonly string[], others: readonly string[]): boolean {
  return some.some((path) => others.some((other) => overlap(path, other)));
}

/** The same path, or one below the other. */
export function overlap(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}
