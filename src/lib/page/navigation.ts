export interface Navigation<State> {
  state: State;
  /** `replace`: without a new entry in the history, as while somebody types. */
  go(change: Partial<State>, options?: { replace?: boolean }): void;
  /** The address of a link. */
  link(change: Partial<State>): string;
}

/** How the state of a page is written in its address. */
export interface PageAddress<State> {
  stateOf(fragment: string): State;
  fragmentOf(state: State): string;
}
