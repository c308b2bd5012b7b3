import { basename } from "node:path";
import type { ApprovalAnswer, ApprovalRequest } from "../../agent/approvals/approvals.js";
import { breakBetweenWords, wrapWords } from "../../lib/terminal/break-columns.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { SandboxDenial } from "../../policy/sandbox-denial.js";
import { shellQuote } from "../../tools/command/shell-quote.js";

/** A question as it is shown, safe for a terminal: no line is wider than asked for. */
export interface ApprovalQuestionText {
  lines: readonly QuestionLine[];
  /** In the order in which they are shown. */
  choices: readonly ApprovalChoice[];
}

export interface QuestionLine {
  text: string;
  /** What brig says, what the model or a command says, the command itself, or the frame around it. */
  kind: "title" | "said" | "command" | "frame";
}

export interface ApprovalChoice {
  /** One letter. */
  key: string;
  label: string;
  answer: ApprovalAnswer;
}

export interface QuestionRoom {
  columns: number;
  /** How many lines of a command or patch are shown at most, beginning and end; the rest is counted. Default: 60. */
  maxCommandLines?: number | undefined;
}

const MAX_COMMAND_LINES = 60;
const MAX_SAID_LINES = 6;
const MIN_COLUMNS = 40;
const MAX_PREFIX_CHARS = 120;
/** Of a path that stands in the frame; a longer one is a part of the command. */
const MAX_SHELL_CHARS = 200;
const STAYS_OPEN = "it stays open: what the agent types into it later is not asked about";

/**
 * What a person is asked. The command stands in a frame of its own that shows where it ends, and every line of it behind a bar: of a
 * new line `│`, of one that goes on `┆`, so that neither spaces nor line breaks can move a part of it to where it looks like something
 * else. What has no sign of its own, such as a character that turns the reading direction, is shown by its number.
 */
export function approvalQuestion(request: ApprovalRequest, room: QuestionRoom): ApprovalQuestionText {
  const columns = Math.max(room.columns, MIN_COLUMNS);
  const { action, reason, denial } = request;
  const said = (label: string, text: string) => saidLines(label, text, columns);
  const justification = action.kind === "command" ? action.escalation.justification : null;
  return {
    lines: [
      ...wrapWords(title(request), columns).map((text) => ({ text, kind: "title" as const })),
      ...framed(action.kind === "command" ? commandOf(action.argv) : patchOf(action.patch), {
        columns,
        maxLines: room.maxCommandLines ?? MAX_COMMAND_LINES,
      }),
      ...said("in", action.cwd),
      ...(action.kind === "command" && action.takesInput ? said("note", STAYS_OPEN) : []),
      ...(reason === null ? [] : said("why", reason)),
      ...(denial === null ? [] : said("failed", failureOf(denial))),
      ...(justification === null ? [] : said("agent", `“${justification}”`)),
    ],
    choices: choicesFor(request),
  };
}

/** What Enter and Escape stand for. */
export const answerOfEnter: ApprovalAnswer = "denied";
export const answerOfEscape: ApprovalAnswer = "abort";

/** A command's own words are no proof of anything, and the person is told whose they are. */
function failureOf({ errno, evidence, toldBy }: SandboxDenial): string {
  if (toldBy === "kernel") return evidence === "" ? errno : `${errno}: ${evidence}`;
  return evidence === ""
    ? `${errno}, going by how the command ended, which it can choose`
    : `${errno}, going by the command's own output, which can say anything: ${evidence}`;
}

function title({ action, place }: ApprovalRequest): string {
  const what = action.kind === "command" ? "run a command" : "apply a patch";
  if (place === "escalated")
    return `The agent asks to ${what} OUTSIDE the sandbox: as root, with a network, and with full access to the workspace.`;
  return `The agent asks to ${what} in the sandbox.`;
}

function choicesFor({ action, prefix }: ApprovalRequest): ApprovalChoice[] {
  const isCommand = action.kind === "command";
  const forSession = isCommand
    ? "yes, and for this command in this directory until the session ends"
    : "yes, and for patches of the same files until the session ends";
  return [
    { key: "y", label: "yes, this once", answer: "approved" },
    { key: "a", label: forSession, answer: "approved_for_session" },
    ...prefixChoice(prefix),
    { key: "n", label: "no, go on without it", answer: "denied" },
  ];
}

/** One that cannot be taken in at a glance is not offered. */
function prefixChoice(prefix: readonly string[] | null): ApprovalChoice[] {
  const text = prefix === null ? "" : shown(shellQuote(prefix));
  if (prefix === null || text.length > MAX_PREFIX_CHARS) return [];
  const label = `yes, and for every command that begins with: ${text}`;
  return [{ key: "p", label, answer: { approvedPrefix: prefix } }];
}

interface Framed {
  label: string;
  text: string;
}

function commandOf(argv: readonly string[]): Framed {
  const [shell = "", flag = "", script] = argv;
  const isShell = /^(?:ba|z|da)?sh$/.test(basename(shell)) && shell.length <= MAX_SHELL_CHARS;
  const isScript = argv.length === 3 && /^-l?c$/.test(flag) && isShell;
  return isScript && script !== undefined
    ? { label: `script of ${shown(shellQuote([shell, flag]))}`, text: script }
    : { label: "command", text: shellQuote(argv) };
}

function patchOf(patch: string): Framed {
  return { label: "patch", text: patch };
}

function framed(
  { label, text }: Framed,
  { columns, maxLines }: { columns: number; maxLines: number },
): QuestionLine[] {
  const lines = text.split("\n");
  const rows = lines.flatMap((line) =>
    breakBetweenWords(shown(line), columns - BAR_WIDTH).map((row, at) => `  ${at === 0 ? "│" : "┆"} ${row}`),
  );
  const size = `${lines.length} ${lines.length === 1 ? "line" : "lines"}, ${text.length} characters`;
  const frame = (line: string): QuestionLine => ({ text: line, kind: "frame" });
  const head = breakBetweenWords(`${label}: ${size}`, columns - BAR_WIDTH);
  return [...head.map((row) => frame(`  ╭ ${row}`)), ...shortened(rows, maxLines), frame("  ╰ end")];
}

const BAR_WIDTH = 4;

/** Beginning and end, with what is between counted. */
function shortened(rows: readonly string[], maxRows: number): QuestionLine[] {
  const command = (text: string): QuestionLine => ({ text, kind: "command" });
  if (rows.length <= maxRows) return rows.map(command);
  const tail = Math.floor(maxRows / 2);
  const head = maxRows - tail;
  const left = rows.slice(head, rows.length - tail);
  const characters = left.reduce((sum, row) => sum + row.length - BAR_WIDTH, 0);
  return [
    ...rows.slice(0, head).map(command),
    { text: `  ⋮ NOT SHOWN: ${left.length} lines, ${characters} characters`, kind: "frame" },
    ...rows.slice(rows.length - tail).map(command),
  ];
}

/** Somebody else's words behind a label, on lines that all begin with space. */
function saidLines(label: string, text: string, columns: number): QuestionLine[] {
  const indent = 10;
  const rows = breakBetweenWords(shown(text), columns - indent);
  const kept =
    rows.length > MAX_SAID_LINES
      ? [...rows.slice(0, MAX_SAID_LINES), `… ${rows.length - MAX_SAID_LINES} more lines`]
      : rows;
  return kept.map((row, at) => ({
    text: `${(at === 0 ? `  ${label}` : "").padEnd(indent)}${row.replace(/^ /, "")}`,
    kind: "said",
  }));
}

/**
 * A text as one line that hides nothing. Other than in an output, where the sequences that steer a terminal are dropped, each of their
 * characters is shown: a shell knows nothing of them and would run what stands between. Blanks that are no blanks to a shell, and
 * long runs of those that are, are shown for what they are.
 */
function shown(text: string): string {
  const signed = text.replace(control, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : code === 0x7f ? "␡" : numbered(character);
  });
  return neutraliseLine(signed)
    .replace(strangeBlank, numbered)
    .replace(/ {9,}/g, (spaces) => `<${spaces.length} spaces>`)
    .replace(/ +$/, (spaces) => "␠".repeat(spaces.length));
}

const control = /\p{Cc}/gu;
/** Spaces other than the usual one, two signs that change the look of the one before, and what a font may have no picture of. */
const strangeBlank = /(?! )\p{Zs}|\u2800|\ufe0e|\ufe0f|\p{Cf}|\p{Cn}|\p{Co}|\p{Cs}/gu;

function numbered(character: string): string {
  return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`;
}
