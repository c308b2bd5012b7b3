import { BrigError } from "../../errors.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";

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

/** More would hide the first ones. The number of the others is given. */
const SHOWN_FAULTS = 50;
const SHOWN_CHARACTERS = 120;

/** `tasks/one/task.toml: environment.cpus: it must be a number` */
export function faultText({ source, file, field, problem }: TaskFault): string {
  const place = file === null ? source : `${source}/${file}`;
  return visibleLine([place, ...(field === null ? [] : [field]), problem].join(": "));
}

/** One error that names all faults, those of the same task one after the other. */
export function faultsError(faults: readonly TaskFault[]): BrigError {
  const tasks = new Set(faults.map(({ source }) => source)).size;
  const shown = faults.slice(0, SHOWN_FAULTS).map((fault) => `  ${faultText(fault)}`);
  const hints = [...new Set(faults.flatMap(({ hint }) => (hint === null ? [] : [hint])))];
  const rest = faults.length - shown.length;
  return new BrigError(
    [
      `${tasks === 1 ? "a task" : `${tasks} tasks`} cannot be used:`,
      ...shown,
      ...(rest > 0 ? [`  and ${rest} more faults`] : []),
    ].join("\n"),
    { code: "task.invalid", hint: hints.length === 0 ? undefined : hints.slice(0, 3).join("; ") },
  );
}

/** A value of a file as it can be shown in a message. */
export function shown(value: unknown): string {
  const text = visibleLine(typeof value === "string" ? JSON.stringify(value) : asText(value));
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
}

function asText(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (value instanceof Date) return "a date";
  return typeof value === "object" && value !== null ? "a table" : String(value);
}
