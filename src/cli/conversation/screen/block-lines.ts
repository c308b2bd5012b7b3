import { breakBetweenWords } from "../../../lib/terminal/break-columns.js";
import { displayWidth } from "../../../lib/terminal/display-width.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { LineFold } from "../../../sandbox/index.js";
import { keptLines, lastLines, lineCountOf } from "../../../sandbox/index.js";
import type { FileChange, PlanStep } from "../../../tools/index.js";
import type { Block, CommandEnd, ListingLine } from "./block.js";
import {
  codeLines,
  fitLine,
  markedRows,
  outputRow,
  outputRows,
  plural,
  type Span,
  type StyledLine,
  span,
  type Tone,
  textLines,
} from "./styled-line.js";
import { wrapText } from "./text-layout.js";
import { SHOWN_EDITS, SHOWN_LINES } from "./view-state.js";

const blank: StyledLine = [span("")];
const SCRIPT_ROWS = 8;
const LISTING_LINES = 400;

const changeMarks = { add: "A", update: "M", delete: "D" } as const;
const planMarks = { completed: "✔", in_progress: "▶", pending: "□" } as const;
const editTones: Record<string, Tone> = { "+": "good", "-": "bad", "@": "accent", "*": "strong" };
const noticeTones = { quiet: "quiet", warning: "warning", failure: "bad" } as const;
const listingTones: Record<ListingLine["tone"], Tone> = {
  plain: "plain",
  added: "good",
  removed: "bad",
  hunk: "accent",
  quiet: "quiet",
};

export interface BlockRoom {
  columns: number;
  /** How to see the lines of an output that are folded away. Default: no hint. */
  foldHint?: string | undefined;
  /** How many lines of an output are shown. Default: 5. */
  shownLines?: number | undefined;
  markdownLines?: MarkdownLines | undefined;
}

/** Lays out Markdown. Default: it is shown as it is written, because `brig run` would load a parser before its first request. */
export type MarkdownLines = (text: string, columns: number) => StyledLine[];

export function blockLines(block: Block, room: BlockRoom): StyledLine[] {
  return rowsOf(block, room).map((line) => fitLine(line, room.columns));
}

/** Blocks as rows, with a blank row between subjects. `earlier` is the block above the first one. */
export function blocksLines(
  blocks: readonly Block[],
  { earlier, ...room }: BlockRoom & { earlier: Block | undefined },
): StyledLine[] {
  return blocks.flatMap((block, index) => [
    ...(isApart(subjectOf(block), index === 0 ? earlier : blocks[index - 1]) ? [blank] : []),
    ...blockLines(block, room),
  ]);
}

/** Blocks of the same subject follow each other without a blank row. */
export type Subject = "person" | "model" | "work" | "question" | "report" | "aside";

const subjects: Record<Exclude<Block["kind"], "message">, Subject> = {
  heading: "report",
  prompt: "person",
  picture: "aside",
  reasoning: "model",
  command: "work",
  call: "work",
  patch: "work",
  plan: "work",
  notice: "aside",
  report: "report",
  listing: "report",
  unfolded: "report",
  question: "question",
  answer: "aside",
};

function subjectOf(block: Block): Subject {
  if (block.kind === "message") return block.isFirst ? "model" : "aside";
  return subjects[block.kind];
}

/** Whether a blank row separates a subject from the block above. An aside belongs to the block above. */
export function isApart(subject: Subject, above: Block | undefined): boolean {
  if (above === undefined || subject === "aside") return false;
  return subject !== (above.kind === "message" ? "model" : subjects[above.kind]) || subject === "report";
}

function rowsOf(block: Block, room: BlockRoom): StyledLine[] {
  const { columns } = room;
  switch (block.kind) {
    case "heading":
      return block.lines.map((line, index) => [span(line, index === 0 ? "strong" : "quiet")]);
    case "prompt":
      return markedRows(span("› ", "prompt"), block.text, { columns, tone: "prompt" });
    case "message":
      return messageRows(block, room);
    case "picture":
      return pictureRows(block, columns);
    case "reasoning":
      return markedRows(span("  "), block.text, { columns, tone: "reasoning" });
    case "command":
      return [...scriptRows(block.script, columns), ...foldedRows(block.output, room), endRow(block.end)];
    case "call":
      return callRows(block, room);
    case "patch":
      return patchRows(block, room);
    case "plan":
      return planRows(block, columns);
    case "notice":
      return noticeRows(block, columns);
    case "report":
      return reportRows(block, columns);
    case "listing":
      return listingRows(block, columns);
    case "unfolded":
      return unfoldedRows(block, columns);
    case "question":
      // Nothing in a question may be hidden, even on a narrow screen, so it is broken and not cut.
      return block.lines.flatMap(({ text, tone }) =>
        breakBetweenWords(text, columns).map((row) => [span(row, tone)]),
      );
    case "answer":
      return markedRows(span("  → ", "quiet"), block.text, { columns, tone: "strong" });
    default:
      return block satisfies never;
  }
}

function messageRows(
  { piece: { kind, text, hasGap }, isFirst }: Block & { kind: "message" },
  { columns, markdownLines = textLines }: BlockRoom,
): StyledLine[] {
  const room = Math.max(1, columns - 2);
  const layOut = { code: codeLines, text: textLines, markdown: markdownLines }[kind];
  return [
    ...(hasGap ? [blank] : []),
    ...layOut(text, room).map((row, index) => [span(isFirst && index === 0 ? "● " : "  ", "accent"), ...row]),
  ];
}

function pictureRows(
  { picture: { name, size } }: Block & { kind: "picture" },
  columns: number,
): StyledLine[] {
  if (name === null) return [];
  return markedRows(span("  "), `picture ${name} ${size.width}×${size.height}`, { columns, tone: "quiet" });
}

export function scriptRows(script: string, columns: number): StyledLine[] {
  return markedRows(span("$ ", "accent"), script, { columns, tone: "strong", maxRows: SCRIPT_ROWS });
}

export function foldedRows(
  output: LineFold,
  { columns, foldHint = "", shownLines = SHOWN_LINES }: BlockRoom,
): StyledLine[] {
  const { lines, hiddenLines } = lastLines(output, shownLines);
  const above = span(`⋮ ${plural(hiddenLines, "line")} above${foldHint}`, "quiet");
  return [
    ...(hiddenLines === 0 ? [] : [outputMargin(above)]),
    ...lines.map((line) => outputRow(line, { columns })),
  ];
}

function outputMargin(text: Span): StyledLine {
  return [span("  │ ", "quiet"), text];
}

function endRow(end: CommandEnd): StyledLine {
  if (end.kind === "running")
    return [span("  … ", "accent"), span("still running in the background", "quiet")];
  if (end.kind === "stopped") return [span("  ✗ ", "bad"), span("stopped", "quiet")];
  const { exitCode, durationMs } = end;
  const mark = exitCode === 0 ? span("  ✓ ", "good") : span("  ✗ ", "bad");
  return [mark, span(`exit ${exitCode} · ${formatDuration(durationMs)}`, "quiet")];
}

/** A successful call shows its output, or its size if it is long. A failed call shows why it failed. */
function callRows({ title, output, success }: Block & { kind: "call" }, room: BlockRoom): StyledLine[] {
  const { columns, foldHint = "", shownLines = SHOWN_LINES } = room;
  const mark = success ? span("• ", "accent") : span("✗ ", "bad");
  const heading = markedRows(mark, title, { columns, tone: "strong", maxRows: 2 });
  if (!success) return [...heading, ...outputRows(lastLines(output, SCRIPT_ROWS).lines, { columns })];
  const count = lineCountOf(output);
  if (count <= shownLines) return [...heading, ...foldedRows(output, room)];
  return [...heading, outputMargin(span(`${plural(count, "line")}${foldHint}`, "quiet"))];
}

function patchRows(
  { changes, edits, success, failure }: Block & { kind: "patch" },
  room: BlockRoom,
): StyledLine[] {
  const { columns } = room;
  const heading: StyledLine = success
    ? [span("✎ ", "accent"), span(`patched ${plural(changes.length, "file")}`, "strong")]
    : [span("✗ ", "bad"), span("the patch failed", "strong")];
  return [
    heading,
    ...changes.flatMap((change) => changeRows(change, columns)),
    ...editRows(edits, room),
    ...(failure === "" ? [] : outputRows([failure], { columns })),
  ];
}

function editRows(edits: LineFold, { columns, foldHint = "" }: BlockRoom): StyledLine[] {
  const hiddenLines = lineCountOf(edits) - SHOWN_EDITS;
  const below = span(`⋮ ${plural(hiddenLines, "line")} below${foldHint}`, "quiet");
  return [
    ...keptLines(edits)
      .head.slice(0, SHOWN_EDITS)
      .map((line) => outputRow(line, { columns, tone: editTones[line.charAt(0)] ?? "plain" })),
    ...(hiddenLines > 0 ? [outputMargin(below)] : []),
  ];
}

function changeRows({ path, kind }: FileChange, columns: number): StyledLine[] {
  return markedRows(span(`  ${changeMarks[kind]} `, "accent"), path, { columns });
}

function planRows({ explanation, steps }: Block & { kind: "plan" }, columns: number): StyledLine[] {
  return [
    [span("☰ ", "accent"), span("plan", "strong")],
    ...(explanation === null || explanation.trim() === ""
      ? []
      : markedRows(span("  "), explanation.trim(), { columns, tone: "reasoning" })),
    ...steps.flatMap((step) => stepRows(step, columns)),
  ];
}

const stepTones = { completed: "quiet", in_progress: "strong", pending: "plain" } as const;

function stepRows({ step, status }: PlanStep, columns: number): StyledLine[] {
  const mark = span(`  ${planMarks[status]} `, status === "completed" ? "good" : "accent");
  return markedRows(mark, step, { columns, tone: stepTones[status] });
}

function noticeRows({ tone, text, hint }: Block & { kind: "notice" }, columns: number): StyledLine[] {
  const mark = span(tone === "failure" ? "✗ " : tone === "warning" ? "! " : "  ", noticeTones[tone]);
  return [
    ...markedRows(mark, text, { columns, tone: noticeTones[tone] }),
    ...(hint === undefined ? [] : markedRows(span("  "), `hint: ${hint}`, { columns, tone: "quiet" })),
  ];
}

function reportRows({ title, rows }: Block & { kind: "report" }, columns: number): StyledLine[] {
  const width = Math.max(...rows.map(([name]) => displayWidth(name)));
  return [
    [span(title, "strong")],
    ...rows.flatMap(([name, value]) =>
      markedRows(span(`  ${name}${" ".repeat(width - displayWidth(name))}  `, "quiet"), value, { columns }),
    ),
  ];
}

function listingRows({ title, lines }: Block & { kind: "listing" }, columns: number): StyledLine[] {
  const missing = lines.length - LISTING_LINES;
  return [
    [span(title, "strong")],
    ...lines
      .slice(0, LISTING_LINES)
      .flatMap(({ text, tone }) =>
        wrapText(text, columns - 2).map((row): StyledLine => [span("  "), span(row, listingTones[tone])]),
      ),
    ...(missing > 0 ? [[span(`  ⋮ ${plural(missing, "more line")}`, "quiet")]] : []),
  ];
}

function unfoldedRows({ title, output }: Block & { kind: "unfolded" }, columns: number): StyledLine[] {
  const { head, missingLines, tail } = keptLines(output);
  return [
    ...markedRows(span("⋯ ", "accent"), title, { columns, tone: "strong", maxRows: 2 }),
    ...outputRows(head, { columns }),
    ...(missingLines > 0 ? [outputMargin(span(`⋮ ${plural(missingLines, "line")} not kept`, "quiet"))] : []),
    ...outputRows(tail, { columns }),
  ];
}
