import type { TaskTree } from "../files.js";
import type { Task, TaskStep } from "../task.js";

/** An error means that the grade of the task means nothing. A warning is for its author to decide. */
type LintLevel = "error" | "warning";

export interface LintFinding {
  /** Stable. */
  rule: string;
  level: LintLevel;
  /** The directory, or `FILE:LINE`, of the task. */
  source: string;
  /** Relative to the task's directory; null for the task itself. */
  file: string | null;
  message: string;
  /** A way to solve the problem; null where the message says it. */
  hint: string | null;
}

/** A rule's finding in a step. */
export type Remark = Pick<LintFinding, "message"> & Partial<Pick<LintFinding, "file" | "level">>;

export interface Rule {
  name: string;
  level: LintLevel;
  /** Whether tasks of Terminal-Bench are looked at as well. Default: those of Harbor and rows only. */
  isForTerminalBench?: boolean | undefined;
  check(step: LintStep): readonly Remark[];
}

/** A step with what rules look at. Texts are empty where there are no such files. */
export interface LintStep {
  task: Task;
  step: TaskStep;
  /** Null for a task that is not a directory. */
  tree: TaskTree | null;
  /** The folders of the step's tests and solution in the tree; null for none. */
  testsFolder: string | null;
  solutionFolder: string | null;
  /** The folder of the tests of all steps, if the step has others besides. */
  baseFolder: string | null;
  /** The script in the tree that prepares the step; null for none. */
  setupScript: string | null;
  /** The script of the check, and all that the tests consist of. */
  script: string;
  tests: string;
  /** All that the solution consists of. */
  solution: string;
}
