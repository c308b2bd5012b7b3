import { join } from "node:path";
import { readTextFile } from "../../lib/bounded-file.js";
import { writeDurably } from "../../lib/files/durable-file.js";
import type { BatchFile } from "../runs/batch/batch-settings.js";
import type { BatchOutcome } from "../runs/batch/run-batch.js";
import { type PassKind, passes, passKindOf, passRestsOn } from "../runs/results/attempt-outcome.js";
import type { AttemptResult } from "../runs/results/attempt-result.js";
import { readResults } from "../runs/results/results-file.js";
import { attemptFolder, runFiles } from "../runs/results/run-files.js";
import { passKindText } from "./pass-text.js";
import { type Summary, summarise } from "./summary.js";

/** Writes `summary.json`, `junit.xml` and, for tasks of SWE-bench, `preds.jsonl`. */
export async function writeReports(
  folder: string,
  { batch, outcomes }: Pick<BatchOutcome, "batch" | "outcomes">,
): Promise<Summary> {
  const summary = summarise(batch, outcomes);
  const results = () => readResults(join(folder, runFiles.results));
  await writeDurably(join(folder, runFiles.summary), `${JSON.stringify(summary, null, 2)}\n`);
  await writeDurably(join(folder, runFiles.junit), junitDocument(summary, results()));
  if (batch.tasks.some(({ format }) => format === "swe-bench"))
    await writeDurably(
      join(folder, runFiles.predictions),
      predictions(batch, { folder, results: results() }),
    );
  return summary;
}

export interface AttemptProblem {
  /** An attempt without a score is an error, since it says nothing about the agent. */
  element: "failure" | "error";
  type: string;
  /** The first says it in short. They come from containers, too. */
  lines: string[];
}

/** Why an attempt did not pass; null if it did. */
export function problemOf(result: AttemptResult): AttemptProblem | null {
  if (passes(result)) return null;
  if (result.status === "scored") return { element: "failure", type: "reward", lines: failureLines(result) };
  const { failure, status } = result;
  const known = failure === null ? gradeMessages(result) : [failure.message, ...failure.evidence];
  const lines = known.length === 0 ? ["there is no grade"] : known;
  return { element: "error", type: failure?.class ?? status, lines };
}

function failureLines(result: AttemptResult): string[] {
  const failedTests = result.steps.flatMap(({ verification }) =>
    (verification?.tests ?? []).filter(({ status }) => status === "failed" || status === "error"),
  );
  return [
    `reward ${result.reward}`,
    ...result.steps.map(({ name, agent }) => `${name === null ? "" : `${name}: `}agent ${agent}`),
    ...gradeMessages(result),
    ...failedTests.map(({ name, status }) => `${status}: ${name}`),
  ];
}

function gradeMessages({ steps }: AttemptResult): string[] {
  return steps.flatMap(({ verification }) =>
    verification?.message == null ? [] : [`verifier: ${verification.message}`],
  );
}

const MAX_PATCH_BYTES = 64 * 1024 * 1024;

/**
 * The predictions that SWE-bench's own harness grades: what the first attempt at each of its tasks changed. The
 * patch is null if the attempt left none.
 */
async function* predictions(
  { tasks, settings: { agent } }: BatchFile,
  { folder, results }: { folder: string; results: AsyncIterable<AttemptResult> },
): AsyncGenerator<string> {
  const names = new Set(tasks.filter(({ format }) => format === "swe-bench").map(({ name }) => name));
  for await (const result of results) {
    if (result.attempt !== 1 || !names.has(result.task)) continue;
    const line = {
      instance_id: result.task,
      model_name_or_path: agent.model ?? agent.name,
      model_patch: await patchOf(result, folder),
    };
    yield `${JSON.stringify(line)}\n`;
  }
}

async function patchOf(result: AttemptResult, folder: string): Promise<string | null> {
  const { diff } = result.files;
  // The path is in a file of the run, which others may have written.
  if (diff === null || diff.startsWith("/") || diff.split("/").includes("..")) return null;
  const read = await readTextFile(join(folder, attemptFolder(result), diff), MAX_PATCH_BYTES);
  return read.kind === "text" ? read.text : null;
}

/** Longest text that a report of tests shows of an attempt that did not pass. */
const MAX_TEXT_LENGTH = 4000;
const MAX_TITLE_LENGTH = 200;

/**
 * One test case for each attempt. An attempt that does not pass is a failure; one without a score is an
 * error, since it says nothing about the agent. Attempts that have not been run are skipped.
 */
export async function* junitDocument(
  summary: Summary,
  results: AsyncIterable<AttemptResult>,
): AsyncGenerator<string> {
  const { planned, scored, passed, unscored, infrastructure, missing } = summary.attempts;
  const seconds = durationSec(summary.startedAt, summary.endedAt);
  const counts = `tests="${planned}" failures="${scored - passed}" errors="${unscored + infrastructure}"`;
  yield '<?xml version="1.0" encoding="UTF-8"?>\n';
  yield `<testsuites name="brig batch" ${counts} skipped="${missing}" time="${seconds}">\n`;
  const timestamp =
    summary.startedAt === null ? "" : ` timestamp="${summary.startedAt.replace(/\..*$/, "")}"`;
  const name = escaped([summary.agent.name, summary.agent.model].filter((part) => part !== null).join(" "));
  yield `  <testsuite name="${name}" ${counts} skipped="${missing}" time="${seconds}"${timestamp}>\n`;
  for await (const result of results) yield testCase(result);
  for (const task of summary.perTask)
    for (let left = 0; left < task.missing; left++)
      yield `    <testcase name="not run" classname="${escaped(task.task)}" time="0"><skipped/></testcase>\n`;
  yield "  </testsuite>\n</testsuites>\n";
}

function testCase(result: AttemptResult): string {
  const { task, attempt, startedAt, endedAt } = result;
  const time = durationSec(startedAt, endedAt);
  const start = `    <testcase name="attempt ${attempt}" classname="${escaped(task)}" time="${time}"`;
  const problem = problemOf(result);
  const kind = passKindOf(result);
  if (kind !== null && kind !== "separate")
    return `${start}>\n${passElements(result, kind)}    </testcase>\n`;
  if (problem === null) return `${start}/>\n`;
  const { element, type, lines } = problem;
  const text = escaped(lines.join("\n").slice(0, MAX_TEXT_LENGTH));
  const title = escaped((lines[0] ?? "").slice(0, MAX_TITLE_LENGTH));
  return `${start}>\n      <${element} type="${escaped(type)}" message="${title}">${text}</${element}>\n    </testcase>\n`;
}

/** Names the kind of a pass, and the things besides the work that it rests on. */
function passElements(result: AttemptResult, kind: PassKind): string {
  const properties = `      <properties><property name="pass" value="${kind}"/></properties>\n`;
  const paths = passRestsOn(result);
  if (paths.length === 0) return properties;
  const text = escaped(`${passKindText(kind)}:\n${paths.join("\n")}`.slice(0, MAX_TEXT_LENGTH));
  return `${properties}      <system-out>${text}</system-out>\n`;
}

function durationSec(from: string | null, to: string | null): string {
  const ms = from === null || to === null ? 0 : Date.parse(to) - Date.parse(from);
  return (Math.max(0, ms) / 1000).toFixed(3);
}

const entities: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\n": "&#10;",
  "\t": "&#9;",
};

/** Escapes texts and attributes. What XML 1.0 does not allow becomes a visible sign, since no escape for it exists. */
function escaped(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, visibleSign)
    .replace(/[&<>"\n\t]/g, (character) => entities[character] ?? "");
}

function visibleSign(character: string): string {
  if (character === "\n" || character === "\t") return character;
  const code = character.charCodeAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : "\ufffd";
}
