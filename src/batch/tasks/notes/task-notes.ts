/** Why a task cannot be used. */
export interface TaskFault {
  /** The directory, or `FILE:LINE`, of the task. */
  source: string;
  /** Relative to the task's directory; null for the task itself. */
  file: string | null;
  /** A field such as `environment.memory`; null for the whole file. */
  field: string | null;
  /** A sentence without a full stop that follows the place. */
  problem: string;
  /** Advice for the author of the task, or for the user. */
  hint: string | null;
  /** A variable of this machine that is not set, without which the task cannot be read. */
  missingVariable?: string | undefined;
}

export interface FaultPlace {
  file?: string;
  field?: string;
  hint?: string;
  missingVariable?: string;
}

/** Collects what one reader has to say about one task. With a fault the task is not used. */
export class TaskNotes {
  readonly source: string;
  readonly faults: TaskFault[] = [];
  readonly warnings: string[] = [];

  constructor(source: string) {
    this.source = source;
  }

  refuse(problem: string, { file, field, hint, missingVariable }: FaultPlace = {}): void {
    this.faults.push({
      source: this.source,
      file: file ?? null,
      field: field ?? null,
      problem,
      hint: hint ?? null,
      ...(missingVariable === undefined ? {} : { missingVariable }),
    });
  }

  warn(sentence: string): void {
    this.warnings.push(sentence);
  }
}
