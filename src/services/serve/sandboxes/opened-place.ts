import type { AttemptResult } from "../../../batch/index.js";
import type { Sandbox } from "../../../sandbox/index.js";

/** What a client works in. */
export interface OpenedPlace {
  sandbox: Sandbox;
  image: string;
  /** Null for the container of a task. */
  mode: string | null;
  task: string | null;
  instruction: string | null;
  workingDirectory: string;
  /** Ends the sandbox and grades what is left; null where there is nothing to grade. */
  grade: (() => Promise<AttemptResult>) | null;
  /** Calls the listener when the sandbox begins to end, by itself as well. Null where its end is not the end of the container. */
  onEnding: ((listener: () => void) => void) | null;
  /** Ends everything. May be called again. */
  close(): Promise<void>;
}
