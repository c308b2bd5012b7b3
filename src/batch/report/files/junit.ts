import { type PassKind, passKindOf, passRestsOn } from "../../runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";
import { passKindText } from "../summary/pass-text.js";
import type { Summary } from "../summary/summary.js";
import { problemOf } from "./problem.js";

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
