import { isAbsolute, relative } from "node:path";
import { passes } from "../../runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";
import type { Task } from "../../tasks/task.js";
import { problemOf } from "../files/problem.js";

/** GitHub shows no more of each kind for a step. */
const MOST_ANNOTATIONS = 10;
const MAX_MESSAGE_LENGTH = 2000;

export interface AnnotationOptions {
  tasks: readonly Pick<Task, "name" | "source">[];
  /** The root of the repository; files elsewhere are not named. */
  workspace: string;
}

/**
 * One workflow command for each task of which an attempt did not pass: an error for a lower reward, a warning if there
 * is no score. Each is one line, whatever the texts contain that came out of containers.
 */
export async function annotations(
  results: AsyncIterable<AttemptResult>,
  { tasks, workspace }: AnnotationOptions,
): Promise<string[]> {
  const sources = new Map(tasks.map(({ name, source }) => [name, source]));
  const [errors, warnings] = [new Map<string, string>(), new Map<string, string>()];
  for await (const result of results) {
    if (passes(result)) continue;
    const found = result.status === "scored" ? errors : warnings;
    if (found.size === MOST_ANNOTATIONS || found.has(result.task)) continue;
    const level = result.status === "scored" ? "error" : "warning";
    const place = placeOf(sources.get(result.task), workspace);
    found.set(result.task, command(level, { result, place }));
  }
  return [...errors.values(), ...warnings.values()];
}

function command(level: string, { result, place }: { result: AttemptResult; place: Place | null }): string {
  const { task, attempt } = result;
  const properties = { ...place, title: `${task} #${attempt}` };
  const shown = Object.entries(properties).map(
    ([name, value]) => `${name}=${escapedProperty(String(value))}`,
  );
  const text = (problemOf(result)?.lines ?? []).join("\n").slice(0, MAX_MESSAGE_LENGTH);
  return `::${level} ${shown.join(",")}::${escaped(text)}`;
}

interface Place {
  file: string;
  line?: number;
}

/** A task is a directory, or `FILE:LINE`. */
function placeOf(source: string | undefined, workspace: string): Place | null {
  const [, path, line] = /^(.*?)(?::([0-9]+))?$/s.exec(source ?? "") ?? [];
  if (path === undefined || path === "") return null;
  const file = relative(workspace, path);
  if (file === "" || file.startsWith("..") || isAbsolute(file)) return null;
  return line === undefined ? { file } : { file, line: Number(line) };
}

/** The runner reads a command at the start of a line, and one of the older form `##[error]` anywhere in it. */
function escaped(text: string): string {
  return text
    .replaceAll("%", "%25")
    .replaceAll("\r", "%0D")
    .replaceAll("\n", "%0A")
    .replaceAll("##[", "## [");
}

function escapedProperty(text: string): string {
  return escaped(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
