import type { AttemptDetail, AttemptRow, RunHeader } from "../../view/view-model.js";

export interface ShownRun {
  header: RunHeader;
  rows: readonly AttemptRow[];
  unreadableLines: number;
}

export type DetailAnswer =
  | { kind: "detail"; detail: AttemptDetail }
  /** The page was made without it. */
  | { kind: "left-out" }
  | { kind: "failed"; reason: string };

export type SourceState =
  | { kind: "loading" }
  | { kind: "failed"; reason: string }
  /** `isStale`: the server does not answer any more. */
  | { kind: "ready"; runs: readonly ShownRun[]; isLive: boolean; isStale: boolean };

export interface RunSource {
  /** Calls `onState` with each new state, until the function that is returned is called. */
  watch(onState: (state: SourceState) => void): () => void;
  detail(run: number, at: number): Promise<DetailAnswer>;
}
