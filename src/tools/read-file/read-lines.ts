import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { type BlockLine, blockAround } from "./block.js";
import { type FileSource, fileChunks } from "./file-chunks.js";
import { formatLine, indentOf, isBlank, isComment, lineText } from "./line-text.js";
import { visitLines } from "./lines.js";

/** Lines to read from a file, all numbers counting from 1. */
export interface LineRequest {
  offset: number;
  limit: number;
  /** Instead of a plain range: what belongs to the block around a line. */
  block: BlockRequest | null;
}

interface BlockRequest {
  anchorLine: number;
  /** Levels of indentation to go out; 0: all of them. */
  maxLevels: number;
  includesSiblings: boolean;
  includesHeader: boolean;
  maxLines: number;
}

/** What one call answers at most; a model is given a fraction of it. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** So many lines on each side of the anchor are held in memory. */
const MAX_BLOCK_LINES = 10_000;
const LEVEL_WIDTH = 4;

/** The text of a request's lines; a BrigError with the model's text where there are none. */
export async function readLines(source: FileSource, request: LineRequest): Promise<string> {
  const lines =
    request.block === null
      ? await readRange(source, request)
      : await readBlock(source, request.block, Math.min(request.limit, request.block.maxLines));
  return lines.join("\n");
}

async function readRange(
  source: FileSource,
  { offset, limit }: { offset: number; limit: number },
): Promise<string[]> {
  const lines: string[] = [];
  let chars = 0;
  await visitLines(fileChunks(source), offset, (head, number) => {
    const line = formatLine(number, lineText(head));
    chars += line.length;
    if (chars > MAX_ANSWER_BYTES) throw tooMuch(number - offset);
    return lines.push(line) < limit;
  });
  if (lines.length === 0) throw invalid("offset exceeds file length");
  return lines;
}

interface NumberedLine extends BlockLine {
  number: number;
  text: string;
}

async function readBlock(source: FileSource, block: BlockRequest, maxLines: number): Promise<string[]> {
  const reach = Math.min(maxLines, MAX_BLOCK_LINES + 1);
  const lines = await readAround(source, block.anchorLine, reach);
  const anchor = lines.findIndex(({ number }) => number === block.anchorLine);
  const anchorIndent = lines[anchor]?.indent;
  if (anchorIndent === undefined) throw invalid("anchor_line exceeds file length");
  const floor = block.maxLevels === 0 ? 0 : Math.max(0, anchorIndent - LEVEL_WIDTH * block.maxLevels);
  const found = blockAround(lines, anchor, { ...block, floor, maxLines: reach });
  if (found.length > MAX_BLOCK_LINES) throw blockTooLong(block.anchorLine);
  return found.map(({ number, text }) => formatLine(number, text));
}

/** The anchor, and as many lines on each side as a block may have; all before them is only passed through. */
async function readAround(source: FileSource, anchorLine: number, reach: number): Promise<NumberedLine[]> {
  const lines: NumberedLine[] = [];
  let indent = 0;
  await visitLines(fileChunks(source), 1, (head, number) => {
    const blank = isBlank(head);
    if (!blank) indent = indentOf(head);
    if (number > anchorLine - reach)
      lines.push({ number, text: lineText(head), indent, isBlank: blank, isComment: isComment(head) });
    return number < anchorLine + reach - 1;
  });
  return lines;
}

function invalid(text: string): BrigError {
  return new BrigError(text, { code: "tool.invalid-input" });
}

function tooMuch(lines: number): BrigError {
  return new BrigError(
    `failed to read file: the lines asked for are more than ${formatBytes(MAX_ANSWER_BYTES)}; the first ${lines} of them are not`,
    { code: "file.too-large" },
  );
}

function blockTooLong(anchorLine: number): BrigError {
  return new BrigError(
    `failed to read file: the block around line ${anchorLine} has more than ${MAX_BLOCK_LINES} lines; ask for fewer with max_lines or max_levels`,
    { code: "file.too-large" },
  );
}
