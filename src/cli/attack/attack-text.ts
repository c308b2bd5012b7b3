import { styleText } from "node:util";
import { wrapLines } from "../../lib/terminal/break-columns.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { AttackedPolicy, Judgement, Verdict } from "../../sandbox/index.js";
import { attemptGroups } from "../../sandbox/index.js";

/** The words for each verdict. */
export const VERDICT_WORDS: Record<Verdict, string> = {
  failed: "did not hold",
  unjudged: "could not be judged",
  allowed: "allowed by the policy",
  untried: "could not be tried",
  held: "held",
};

const colours = {
  failed: "red",
  unjudged: "magenta",
  allowed: "yellow",
  untried: "gray",
  held: "green",
} as const;

interface Shown {
  engine: string;
  kernel: string;
  hasControl: boolean;
  showsAll: boolean;
  usesColour: boolean;
  /** The terminal's width; undefined for no limit. */
  columns: number | undefined;
}

export function countOf(judgements: readonly Judgement[], verdict: Verdict): number {
  return judgements.filter((one) => one.verdict === verdict).length;
}

/** The judgements of each group of attempts, under the group's title. */
export function byGroup(judgements: readonly Judgement[]): { title: string; judgements: Judgement[] }[] {
  return attemptGroups.map(({ title, attempts }) => ({
    title,
    judgements: attempts.flatMap(({ attempt }) => judgements.filter((one) => one.attempt === attempt)),
  }));
}

/** E.g. "41 held, 2 allowed by the policy". */
export function summaryOf(judgements: readonly Judgement[]): string {
  const words = (Object.keys(VERDICT_WORDS) as Verdict[])
    .toReversed()
    .map((verdict) => ({ verdict, count: countOf(judgements, verdict) }))
    .filter(({ count }) => count > 0);
  return words.map(({ verdict, count }) => `${count} ${VERDICT_WORDS[verdict]}`).join(", ");
}

/** The heading of a report: the policy, the image, the user and whatever else the attempts ran under. */
export function headingOf({ policy, image, runtime, kernel, user, egress }: AttackedPolicy): string {
  const on = kernel === "gvisor" ? `gVisor (${runtime ?? "the engine's default"})` : runtime;
  return `${policy}: image ${image}, commands as ${user.uid}:${user.gid}${on === null ? "" : `, runtime ${on}`}${egressWords(egress)}`;
}

function egressWords(egress: AttackedPolicy["egress"]): string {
  const { ruledHosts = [], secrets = [] } = egress ?? {};
  const rules = ruledHosts.length > 0 ? [`rules for requests to ${ruledHosts.join(", ")}`] : [];
  const outside = secrets.length > 0 ? [`secrets that stay outside: ${secrets.join(", ")}`] : [];
  return [...rules, ...outside].map((words) => `; ${words}`).join("");
}

export function attackText(attacked: readonly AttackedPolicy[], shown: Shown): string {
  const parts = attacked.map((one) => policyText(one, shown));
  const note = shown.hasControl
    ? "Each refusal counts only because the same attempt succeeds in a container without protection."
    : "Without a control (--no-control) nothing shows that the attempts could have succeeded.";
  return `${parts.join("\n")}\n${fitted(`${shown.engine}, kernel ${shown.kernel}. ${note}`, shown)}\n`;
}

function policyText(attacked: AttackedPolicy, shown: Shown): string {
  const bold = (text: string) =>
    shown.usesColour ? styleText("bold", text, { validateStream: false }) : text;
  const lines = [bold(neutraliseLine(headingOf(attacked)))];
  for (const { title, judgements } of byGroup(attacked.judgements)) {
    lines.push("", bold(title));
    for (const judgement of judgements) lines.push(...judgementLines(judgement, shown));
  }
  const summary = `${neutraliseLine(attacked.policy)}: ${summaryOf(attacked.judgements)}`;
  lines.push("", bold(summary), "");
  return lines.join("\n");
}

function judgementLines(judgement: Judgement, shown: Shown): string[] {
  const { id, title, verdict, outcome, control, reason, advice } = judgement;
  const word = VERDICT_WORDS[verdict];
  const coloured = shown.usesColour ? styleText(colours[verdict], word, { validateStream: false }) : word;
  const answer = neutraliseLine(outcome);
  const isAnswered = verdict !== "untried" && !(verdict === "allowed" && answer.startsWith("untried"));
  const first = fitted(`  ${id.padEnd(4)} ${title}: ${word}${isAnswered ? ` (${answer})` : ""}`, shown, 7);
  const notes = [
    ...(reason === null ? [] : [reason]),
    ...(advice === null ? [] : [`→ ${advice}`]),
    ...(shown.showsAll && control !== null ? [`without protection: ${neutraliseLine(control)}`] : []),
  ];
  return [
    first.replace(`: ${word}`, () => `: ${coloured}`),
    ...notes.map((note) => fitted(`       ${neutraliseLine(note)}`, shown, 7)),
  ];
}

/** Wraps a text to the terminal's width; all lines but the first are indented. */
function fitted(text: string, { columns }: Shown, indent = 0): string {
  if (columns === undefined) return text;
  const own = /^ */.exec(text)?.[0] ?? "";
  const lines = wrapLines(text.slice(own.length), Math.max(20, columns - Math.max(indent, own.length))).split(
    "\n",
  );
  return lines.map((line, at) => (at === 0 ? own : " ".repeat(indent)) + line).join("\n");
}
