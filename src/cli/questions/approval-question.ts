import { basename } from "node:path";
import type { ApprovalAnswer, ApprovalRequest } from "../../agent/approvals/approvals.js";
import { breakBetweenWords, wrapWords } from "../../lib/terminal/break-columns.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { SandboxDenial } from "../../policy/sandbox-denial.js";
import { shellQuote } from "../../tools/command/shell-quote.js";

/** The text of a question, safe for a terminal. No line is wider than the terminal. */
export interface ApprovalQuestionText {
  lines: readonly QuestionLine[];
  choices: readonly ApprovalChoice[];
}

export interface QuestionLine {
  text: string;
  /** What brig says, a quotation of the model or a command, the command itself, or the frame around it. */
  kind: "title" | "quote" | "command" | "frame";
}

export interface ApprovalChoice {
  key: string;
  label: string;
  answer: ApprovalAnswer;
}

export interface QuestionRoom {
  columns: number;
  /** Of a longer command or patch, only the beginning and the end are shown. Default: 60. */
  maxCommandLines?: number | undefined;
}

const MAX_COMMAND_LINES = 60;
const MAX_QUOTE_LINES = 6;
const MIN_COLUMNS = 40;
const MAX_PREFIX_CHARS = 120;
/** A shell with a longer path is shown as a part of the command, not in the frame. */
const MAX_SHELL_CHARS = 200;
const STAYS_OPEN = "it stays open: the agent can type into it later without asking";

/**
 * What a person is asked. The command is in a frame that shows where it ends. Each of its lines is behind a
 * bar (`│` for a new line, `┆` for the rest of a long one), so that spaces and line breaks cannot make a part
 * of it look like something else. Invisible characters, such as one that changes the reading direction, are
 * shown as code points.
 */
export function approvalQuestion(request: ApprovalRequest, room: QuestionRoom): ApprovalQuestionText {
  const columns = Math.max(room.columns, MIN_COLUMNS);
  const { action, reason, denial } = request;
  const quote = (label: string, text: string) => quoteLines(label, text, columns);
  const justification = action.kind === "command" ? action.escalation.justification : null;
  return {
    lines: [
      ...wrapWords(title(request), columns).map((text) => ({ text, kind: "title" as const })),
      ...framed(action.kind === "command" ? commandOf(action.argv) : patchOf(action.patch), {
        columns,
        maxLines: room.maxCommandLines ?? MAX_COMMAND_LINES,
      }),
      ...quote("in", action.cwd),
      ...(action.kind === "command" && action.takesInput ? quote("note", STAYS_OPEN) : []),
      ...(reason === null ? [] : quote("why", reason)),
      ...(denial === null ? [] : quote("failed", failureOf(denial))),
      ...(justification === null ? [] : quote("agent", `“${justification}”`)),
    ],
    choices: choicesFor(request),
  };
}

export const answerOfEnter: ApprovalAnswer = "denied";
export const answerOfEscape: ApprovalAnswer = "abort";

/** Says where the evidence comes from, since the output of a command proves nothing. */
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

/** A prefix that is too long to take in at a glance is not offered. */
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

/** The first and last rows, with a note of how much is missing between them. */
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

/** Quoted text behind a label. All lines are indented, so that they cannot look like lines of brig. */
function quoteLines(label: string, text: string, columns: number): QuestionLine[] {
  const indent = 10;
  const rows = breakBetweenWords(shown(text), columns - indent);
  const kept =
    rows.length > MAX_QUOTE_LINES
      ? [...rows.slice(0, MAX_QUOTE_LINES), `… ${rows.length - MAX_QUOTE_LINES} more lines`]
      : rows;
  return kept.map((row, at) => ({
    text: `${(at === 0 ? `  ${label}` : "").padEnd(indent)}${row.replace(/^ /, "")}`,
    kind: "quote",
  }));
}

/**
 * A text as one line that hides nothing. In an output, control sequences are dropped; here each of their
 * characters is shown, because a shell ignores control sequences and would run the text between them. Unusual
 * blanks, which a shell does not take for blanks, and long runs of spaces are made visible.
 */
function shown(text: string): string {
  const visible = text.replace(control, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : code === 0x7f ? "␡" : numbered(character);
  });
  return neutraliseLine(visible)
    .replace(strangeBlank, numbered)
    .replace(/ {9,}/g, (spaces) => `<${spaces.length} spaces>`)
    .replace(/ +$/, (spaces) => "␠".repeat(spaces.length));
}

const control = /\p{Cc}/gu;
/** Blanks other than the space, variation selectors, and characters that a font may not show. */
const strangeBlank = /(?! )\p{Zs}|\u2800|\ufe0e|\ufe0f|\p{Cf}|\p{Cn}|\p{Co}|\p{Cs}/gu;

function numbered(character: string): string {
  return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`;
}
