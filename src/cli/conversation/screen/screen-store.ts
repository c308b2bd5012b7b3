import type { ScreenState } from "./screen-state.js";

const FRAME_MS = 40;

/** Holds the state of the screen and tells its watcher about changes, at most once per frame. */
export class ScreenStore {
  #state: ScreenState;
  #watcher: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(state: ScreenState) {
    this.#state = state;
  }

  read(): ScreenState {
    return this.#state;
  }

  watch(watcher: (() => void) | null): void {
    this.#watcher = watcher;
  }

  /** With `isUrgent`, the watcher is told immediately. For what the person does. */
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
    this.#watcher?.();
  }
}
