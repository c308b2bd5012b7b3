import { join } from "node:path";

/** The files of a run, relative to its folder. */
export const runFiles = {
  batch: "batch.json",
  results: "results.jsonl",
  summary: "summary.json",
  junit: "junit.xml",
  predictions: "preds.jsonl",
  attempts: "attempts",
  superseded: "superseded",
} as const;

/** File in the folder of an attempt. Written when it has ended, so an attempt without it is torn. */
export const RESULT_FILE = "result.json";

/** One attempt at a task of the run. */
export interface AttemptPlace {
  task: string;
  attempt: number;
}

/** The name of a task is at most one `/` away from the name of a directory. */
export function taskFolderName(task: string): string {
  return task.replaceAll("/", "__");
}

/** Relative to the folder of the run. */
export function attemptFolder({ task, attempt }: AttemptPlace): string {
  return join(runFiles.attempts, taskFolderName(task), String(attempt));
}

/** Folder for the files of a try that the infrastructure ended. */
export function tryFolder(place: AttemptPlace, tryNumber: number): string {
  return `${attemptFolder(place)}.try-${tryNumber}`;
}

/** Key for maps. A task's name has no `#`. */
export function attemptKey({ task, attempt }: AttemptPlace): string {
  return `${task}#${attempt}`;
}
