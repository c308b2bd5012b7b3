import type { ScreenState } from "./screen-state.js";

const FRAME_MS = 40;

/** Holds the state of the screen and tells its watchers about changes, at most once per frame. */
export class ScreenStore {
  #state: ScreenState;
  #watchers = new Set<() => void>();
  #timer: NodeJS.Timeout | null = null;

  constructor(state: ScreenState) {
    this.#state = state;
  }

  readonly read = (): ScreenState => this.#state;

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
    };
  };

  /** With `isUrgent`, the watchers are told immediately. For what the person does. */
  update(change: (state: ScreenState) => ScreenState, { isUrgent = false } = {}): void {
    const next = change(this.#state);
    if (next === this.#state) return;
    this.#state = next;
    if (isUrgent) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), FRAME_MS);
  }

  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const watcher of this.#watchers) watcher();
  }
}
