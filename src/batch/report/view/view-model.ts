import type { PassKind } from "../../runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";

/** What the page in the browser is given. Every text in it is already free of control sequences. */

/** A text, or its beginning and its end where the middle was too long to be shown. */
export interface ShownText {
  head: string;
  omittedBytes: number;
  tail: string;
}

export interface RunHeader {
  /** The name of the run's folder. */
  name: string;
  /** Attempts that the run is to have; null if its settings do not say. */
  plannedAttempts: number | null;
  /** What `batch.json` says about the run, one row each. */
  settings: readonly { name: string; value: string }[];
  /** By the name of the task. Tasks without tags are missing. */
  tags: Readonly<Record<string, readonly string[]>>;
}

/** What the table and the charts need of an attempt. */
export interface AttemptRow {
  task: string;
  attempt: number;
  agent: string;
  model: string | null;
  status: AttemptResult["status"];
  reward: number | null;
  /** Why there is no full reward; null if there is. */
  cause: string | null;
  /** How it passed; null if it did not. */
  passKind: PassKind | null;
  startedAt: string;
  wallMs: number;
  inputTokens: number;
  outputTokens: number;
  costUsd: number | null;
  toolCalls: number;
}

/** What has changed since the last time that a page asked. */
export interface RunChanges {
  /** Null if the page has it already. */
  header: RunHeader | null;
  /** Another number than before: the page drops the rows it has. */
  generation: number;
  /** What to ask with the next time. */
  seq: number;
  rows: readonly { at: number; row: AttemptRow }[];
  /** Ask again at once. */
  hasMore: boolean;
  /** Lines that are not valid results. */
  unreadableLines: number;
}

export interface Fact {
  name: string;
  value: string;
}

export interface TrajectoryCall {
  tool: string;
  arguments: ShownText;
  /** Null for a call without a result. */
  output: ShownText | null;
  facts: readonly Fact[];
}

export interface TrajectoryStep {
  number: number;
  source: "system" | "user" | "agent";
  at: string | null;
  message: ShownText;
  reasoning: ShownText | null;
  calls: readonly TrajectoryCall[];
  facts: readonly Fact[];
}

export type Trajectory =
  | { kind: "none" }
  /** `reason` completes the sentence "The trajectory …". */
  | { kind: "unreadable"; reason: string }
  | { kind: "steps"; steps: readonly TrajectoryStep[]; omittedSteps: number };

export interface AttemptStep {
  name: string | null;
  ending: string;
  message: ShownText | null;
  rewards: readonly Fact[];
  verification: ShownVerification | null;
}

/** Its findings are those that were neutralised. */
interface ShownVerification
  extends Omit<NonNullable<AttemptResult["steps"][number]["verification"]>, "message"> {
  message: ShownText | null;
  omittedTests: number;
}

export interface AttemptFailureView {
  class: string;
  message: ShownText;
  evidence: readonly string[];
}

export interface AttemptDetail {
  folder: string;
  failure: AttemptFailureView | null;
  tries: readonly { startedAt: string; failure: AttemptFailureView }[];
  rewards: readonly Fact[];
  steps: readonly AttemptStep[];
  usage: readonly Fact[];
  resources: readonly Fact[];
  timings: readonly { stage: "environment" | "agent" | "verifier"; ms: number }[];
  image: string | null;
  taskChecksum: string;
  trajectory: Trajectory;
  /** Null for files that the attempt does not have or that cannot be shown. */
  diff: ShownText | null;
  testOutput: ShownText | null;
  agentOutput: ShownText | null;
  proof: ShownText | null;
}

/** The first block of a static page. Rows and details are in blocks after it. */
export interface StaticPage {
  runs: readonly StaticRun[];
}

export interface StaticRun {
  header: RunHeader;
  rows: readonly AttemptRow[];
  unreadableLines: number;
  /** For each row, the number of the block with its details; -1 if they were left out. */
  blocks: readonly number[];
  /** For each row, its place among the details of the block. */
  places: readonly number[];
}
