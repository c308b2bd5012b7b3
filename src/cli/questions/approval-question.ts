import type { ApprovalAnswer, ApprovalRequest } from "../../agent/index.js";
import { isTooDeep } from "../../lib/json/nesting.js";
import { shellQuote } from "../../lib/shell-quote.js";
import { breakBetweenWords, wrapWords } from "../../lib/terminal/break-columns.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import type { SandboxDenial } from "../../sandbox/index.js";
import { clipped } from "../../sandbox/index.js";
import type { ActionToReview, McpCallToReview } from "../../tools/index.js";
import { shellScript } from "../../tools/index.js";

/** The text of a question, safe for a terminal. No line is wider than the terminal. */
export interface ApprovalQuestionText {
  lines: readonly QuestionLine[];
  choices: readonly ApprovalChoice[];
}

export interface QuestionLine {
  text: string;
  /** The origin of the text: brig, a quotation of the model or a command, the command itself, or the frame around it. */
  kind: "title" | "quote" | "command" | "frame";
}

export interface ApprovalChoice {
  key: string;
  label: string;
  answer: ApprovalAnswer;
}

export interface QuestionRoom {
  columns: number;
  /** A longer command or patch is shown with its beginning and end only. Default: 60. */
  maxCommandLines?: number | undefined;
}

const MAX_COMMAND_LINES = 60;
const MAX_QUOTE_LINES = 6;
const MIN_COLUMNS = 40;
const MAX_PREFIX_CHARS = 120;
/** A shell with a longer path is shown as a part of the command, not in the frame. */
const MAX_SHELL_CHARS = 200;
const MAX_ARGUMENT_CHARS = 16_000;
const MAX_NAME_CHARS = 120;
const STAYS_OPEN = "it stays open: the agent can type into it later without asking";

/**
 * The question for a person. The command is in a frame that shows where it ends. Each of its lines is behind a
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
      ...framed(subjectOf(action), {
        columns,
        maxLines: room.maxCommandLines ?? MAX_COMMAND_LINES,
      }),
      ...(action.kind === "mcp-call" ? quote("claims", claimsOf(action)) : quote("in", action.cwd)),
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

function title({ action, place, agent }: ApprovalRequest): string {
  const who = agent === undefined ? "The agent" : `The agent ${nameOf(agent.nickname)}`;
  if (action.kind === "mcp-call")
    return `${who} asks to call the tool ${nameOf(action.name)} of the MCP server ${nameOf(action.server)}.`;
  const what = action.kind === "command" ? "run a command" : "apply a patch";
  if (place === "escalated")
    return `${who} asks to ${what} OUTSIDE the sandbox: as root, with a network, and with full access to the workspace.`;
  return `${who} asks to ${what} in the sandbox.`;
}

const forSession: Record<ActionToReview["kind"], string> = {
  command: "yes, and for this command in this directory until the session ends",
  patch: "yes, and for patches of the same files until the session ends",
  "mcp-call": "yes, and for every call of this tool until the session ends",
};

function choicesFor({ action, prefix }: ApprovalRequest): ApprovalChoice[] {
  return [
    { key: "y", label: "yes, this once", answer: "approved" },
    { key: "a", label: forSession[action.kind], answer: "approved_for_session" },
    ...prefixChoice(prefix),
    { key: "n", label: "no, go on without it", answer: "denied" },
  ];
}

/** A prefix that is too long to take in at a glance is not offered. */
function prefixChoice(prefix: readonly string[] | null): ApprovalChoice[] {
  const text = prefix === null ? "" : visibleLine(shellQuote(prefix));
  if (prefix === null || text.length > MAX_PREFIX_CHARS) return [];
  const label = `yes, and for every command that begins with: ${text}`;
  return [{ key: "p", label, answer: { approvedPrefix: prefix } }];
}

interface Framed {
  label: string;
  text: string;
}

function commandOf(argv: readonly string[]): Framed {
  const [shell = "", flag = ""] = argv;
  const script = shell.length <= MAX_SHELL_CHARS ? shellScript(argv) : null;
  return script === null
    ? { label: "command", text: shellQuote(argv) }
    : { label: `script of ${visibleLine(shellQuote([shell, flag]))}`, text: script };
}

function subjectOf(action: ActionToReview): Framed {
  switch (action.kind) {
    case "command":
      return commandOf(action.argv);
    case "patch":
      return { label: "patch", text: action.patch };
    case "mcp-call":
      return { label: "arguments", text: argumentsText(action) };
    default:
      return action satisfies never;
  }
}

/**
 * Very long arguments are cut in the middle: laying them out would take long, and the frame cuts them anyway.
 */
function argumentsText({ arguments: args }: McpCallToReview): string {
  const text = isTooDeep(args) ? "(nested too deeply to be shown)" : JSON.stringify(args, null, 2);
  if (text.length <= MAX_ARGUMENT_CHARS) return text;
  const half = MAX_ARGUMENT_CHARS / 2;
  const left = text.length - MAX_ARGUMENT_CHARS;
  return `${text.slice(0, half)}\n⋮ NOT SHOWN: ${left} characters\n${text.slice(-half)}`;
}

/** Quotes the name of a server or tool, which can contain any characters. */
function nameOf(name: string): string {
  return clipped(visibleLine(JSON.stringify(name)), MAX_NAME_CHARS);
}

/** Claims of the server about its tool, which nobody has checked. */
function claimsOf({ title, annotations: { readOnly, destructive, openWorld } }: McpCallToReview): string {
  const hints = [
    readOnly === null ? [] : [readOnly ? "it only reads" : "it changes something"],
    destructive === null ? [] : [destructive ? "it may destroy something" : "it destroys nothing"],
    openWorld === null ? [] : [openWorld ? "it reaches the outside world" : "it reaches nothing outside"],
  ].flat();
  const about = title === null ? "" : `“${clipped(title, MAX_NAME_CHARS)}”; `;
  return `${about}${hints.length === 0 ? "the server does not say what it may do" : hints.join(", ")}`;
}

function framed(
  { label, text }: Framed,
  { columns, maxLines }: { columns: number; maxLines: number },
): QuestionLine[] {
  const lines = text.split("\n");
  const rows = lines.flatMap((line) =>
    breakBetweenWords(visibleLine(line), columns - BAR_WIDTH).map(
      (row, at) => `  ${at === 0 ? "│" : "┆"} ${row}`,
    ),
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
  const rows = breakBetweenWords(visibleLine(text), columns - indent);
  const kept =
    rows.length > MAX_QUOTE_LINES
      ? [...rows.slice(0, MAX_QUOTE_LINES), `… ${rows.length - MAX_QUOTE_LINES} more lines`]
      : rows;
  return kept.map((row, at) => ({
    text: `${(at === 0 ? `  ${label}` : "").padEnd(indent)}${row.replace(/^ /, "")}`,
    kind: "quote",
  }));
}
