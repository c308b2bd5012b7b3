import { BrigError } from "../../../errors.js";
import { trim } from "../../../lib/white-space.js";
import { cutText } from "../../../sandbox/index.js";
import { type FileSource, fileChunks } from "./file-chunks.js";
import { visitLines } from "./lines.js";

/** Line numbers count from 1. */
interface LineRequest {
  offset: number;
  limit: number;
  /** Null for a plain range of lines. */
  block: BlockRequest | null;
}

export interface BlockRequest {
  anchorLine: number;
  /** The number of outer levels of indentation to include; 0 for all. */
  maxLevels: number;
  includesSiblings: boolean;
  includesHeader: boolean;
  maxLines: number;
}

/** The longest output of a call. A model receives a fraction of it. */
const MAX_ANSWER_CHARS = 16 * 1024 * 1024;
const LINES_AT_A_TIME = 256;
/** As many lines on each side of the anchor are in memory. */
const MAX_BLOCK_LINES = 10_000;
const LEVEL_WIDTH = 4;

/** Returns the text of the lines. Throws a BrigError with a message for the model if there are none. */
export async function readLines(source: FileSource, request: LineRequest): Promise<string> {
  return request.block === null
    ? await readRange(source, request)
    : await readBlock(source, request.block, Math.min(request.limit, request.block.maxLines));
}

async function readRange(
  source: FileSource,
  { offset, limit }: { offset: number; limit: number },
): Promise<string> {
  const lines = new JoinedLines();
  await visitLines(fileChunks(source), offset, (text, number) => {
    lines.push(formatLine(number, text));
    if (lines.chars > MAX_ANSWER_CHARS) throw tooMuch(number - offset);
    return lines.count < limit;
  });
  if (lines.count === 0) throw invalid("offset exceeds file length");
  return lines.text();
}

/** Joins lines in batches. A slice keeps its larger string in memory; a joined copy does not. */
class JoinedLines {
  readonly #joined: string[] = [];
  #parts: string[] = [];
  count = 0;
  chars = 0;

  push(line: string): void {
    this.#parts.push(line);
    this.count++;
    this.chars += line.length;
    if (this.#parts.length === LINES_AT_A_TIME) this.#join();
  }

  text(): string {
    this.#join();
    return this.#joined.join("\n");
  }

  #join(): void {
    if (this.#parts.length > 0) this.#joined.push(this.#parts.join("\n"));
    this.#parts = [];
  }
}

interface NumberedLine extends BlockLine {
  number: number;
  text: string;
}

async function readBlock(source: FileSource, block: BlockRequest, maxLines: number): Promise<string> {
  const reach = Math.min(maxLines, MAX_BLOCK_LINES + 1);
  const lines = await readAround(source, block.anchorLine, reach);
  const anchor = lines.findIndex(({ number }) => number === block.anchorLine);
  const anchorIndent = lines[anchor]?.indent;
  if (anchorIndent === undefined) throw invalid("anchor_line exceeds file length");
  const floor = block.maxLevels === 0 ? 0 : Math.max(0, anchorIndent - LEVEL_WIDTH * block.maxLevels);
  const found = blockAround(lines, anchor, { ...block, floor, maxLines: reach });
  if (found.length > MAX_BLOCK_LINES) throw blockTooLong(block.anchorLine);
  return found.map(({ text }) => text).join("\n");
}

/** Returns the anchor and as many lines on each side of it as the block may have. */
async function readAround(source: FileSource, anchorLine: number, reach: number): Promise<NumberedLine[]> {
  const lines: NumberedLine[] = [];
  let indent = 0;
  await visitLines(fileChunks(source), 1, (text, number) => {
    const blank = isBlank(text);
    if (!blank) indent = indentOf(text);
    if (number > anchorLine - reach)
      lines.push({
        number,
        // A copy, since a slice would keep the larger string in memory.
        text: Buffer.from(formatLine(number, text)).toString("utf8"),
        indent,
        isBlank: blank,
        isComment: isComment(text),
      });
    return number < anchorLine + reach - 1;
  });
  return lines;
}

function invalid(text: string): BrigError {
  return new BrigError(text, { code: "tool.invalid-input" });
}

function tooMuch(lines: number): BrigError {
  return new BrigError(
    `failed to read file: the lines asked for are more than ${MAX_ANSWER_CHARS} characters; the first ${lines} of them are not`,
    { code: "file.too-large" },
  );
}

function blockTooLong(anchorLine: number): BrigError {
  return new BrigError(
    `failed to read file: the block around line ${anchorLine} has more than ${MAX_BLOCK_LINES} lines; ask for fewer with max_lines or max_levels`,
    { code: "file.too-large" },
  );
}

interface BlockLine {
  /** A blank line has the indentation of the line before it. */
  indent: number;
  isBlank: boolean;
  isComment: boolean;
}

interface BlockRules {
  /** Lines that are indented less end the block. */
  floor: number;
  maxLines: number;
  /** Includes every line at the floor, not just the first on each side. */
  includesSiblings: boolean;
  /** Includes comments at the floor above the block. */
  includesHeader: boolean;
}

/** Extends a block from its anchor, up and down in turn, and drops blank lines at its ends. */
function blockAround<Line extends BlockLine>(
  lines: readonly Line[],
  anchor: number,
  rules: BlockRules,
): Line[] {
  const maxLines = Math.min(rules.maxLines, lines.length);
  const anchorLines = lines.slice(anchor, anchor + 1);
  if (maxLines === 1) return anchorLines;
  const above: Line[] = [];
  const below: Line[] = [];
  const isFull = () => above.length + 1 + below.length >= maxLines;
  const up = walk(lines.slice(0, anchor).toReversed(), rules, rules.includesHeader);
  const down = walk(lines.slice(anchor + 1), rules, false);
  while (!isFull()) {
    const tookAbove = take(up, above);
    if (isFull()) break;
    if (!take(down, below) && !tookAbove) break;
  }
  return withoutBlankEnds([...above.toReversed(), ...anchorLines, ...below]);
}

function* walk<Line extends BlockLine>(
  lines: readonly Line[],
  { floor, includesSiblings }: BlockRules,
  includesComments: boolean,
): Generator<Line, undefined> {
  let floorLines = 0;
  for (const line of lines) {
    if (line.indent < floor) return;
    if (line.indent === floor && !includesSiblings) {
      if (floorLines > 0 && !(includesComments && line.isComment)) return;
      floorLines++;
    }
    yield line;
  }
}

function take<Line>(side: Generator<Line, undefined>, taken: Line[]): boolean {
  const { value } = side.next();
  if (value === undefined) return false;
  taken.push(value);
  return true;
}

function withoutBlankEnds<Line extends BlockLine>(lines: readonly Line[]): Line[] {
  const first = lines.findIndex(({ isBlank }) => !isBlank);
  return first === -1 ? [] : lines.slice(first, lines.findLastIndex(({ isBlank }) => !isBlank) + 1);
}

const MAX_TEXT_BYTES = 500;
const TAB_WIDTH = 4;
const commentStarts = ["#", "//", "--"];

function formatLine(number: number, line: string): string {
  return `L${number}: ${cutText(line, MAX_TEXT_BYTES)}`;
}

function indentOf(line: string): number {
  let indent = 0;
  for (let at = 0; line[at] === " " || line[at] === "\t"; at++) indent += line[at] === "\t" ? TAB_WIDTH : 1;
  return indent;
}

function isBlank(line: string): boolean {
  return trim(line) === "";
}

function isComment(line: string): boolean {
  const text = trim(line);
  return commentStarts.some((start) => text.startsWith(start));
}
