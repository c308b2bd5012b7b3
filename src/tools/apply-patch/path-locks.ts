/** Lets actions on different paths run together, and those that share a path one after the other, in the order of their calls. */
export class PathLocks {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(paths: readonly string[], action: () => Promise<T>): Promise<T> {
    const before = paths.map((path) => this.#last.get(path));
    const result = Promise.all(before).then(action);
    const over: Promise<void> = result.then(
      () => this.#forget(paths, over),
      () => this.#forget(paths, over),
    );
    for (const path of paths) this.#last.set(path, over);
    return result;
  }

  #forget(paths: readonly string[], over: Promise<unknown>): void {
    for (const path of paths) if (this.#last.get(path) === over) this.#last.delete(path);
  }
}
