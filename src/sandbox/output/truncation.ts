import {
  type CapturedOutput,
  captured,
  countLines,
  type Gap,
  keptBytes,
  type Piece,
  renderOutput,
  total,
} from "./captured-output.js";
import { textEnd, textStart } from "./cut-text.js";
import type { OutputPart } from "./output-capture.js";

/** The amount of an output that a model receives. One token counts as four bytes. */
export interface TruncationPolicy {
  mode: "tokens" | "bytes";
  limit: number;
}

export const BYTES_PER_TOKEN = 4;

function byteBudget({ mode, limit }: TruncationPolicy): number {
  return mode === "tokens" ? limit * BYTES_PER_TOKEN : limit;
}

export function tokenBudget({ mode, limit }: TruncationPolicy): number {
  return mode === "tokens" ? limit : tokensOfBytes(limit);
}

export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

export function truncateText(text: string, policy: TruncationPolicy): string {
  return truncateOutput(captured(text), policy);
}

/** Like `truncateOutput`, but begins with a warning and the numbers of tokens and lines if it is cut. */
export function truncateWithLineCount(output: CapturedOutput, policy: TruncationPolicy): string {
  const text = truncateOutput(output, policy);
  const bytes = total(output, "bytes");
  if (bytes <= byteBudget(policy)) return text;
  return (
    `Warning: truncated output (original token count: ${tokensOfBytes(bytes)})\n` +
    `Total output lines: ${countLines(output)}\n\n${text}`
  );
}

/**
 * Cuts the middle out of an output that is over the budget. Keeps half of the budget at each end, in whole
 * characters, and puts a marker with the size of the cut between them.
 */
export function truncateOutput(output: CapturedOutput, policy: TruncationPolicy): string {
  const budget = byteBudget(policy);
  if (keptBytes(output) <= budget) return renderOutput(output);
  const { start, cut, end } = cutMiddle(output, budget);
  const missingBytes = cut.bytes + keptBytes(start) + keptBytes(end) - budget;
  const marker =
    policy.mode === "tokens"
      ? `…${tokensOfBytes(missingBytes)} tokens truncated…`
      : `…${cut.chars} chars truncated…`;
  return renderOutput(start) + marker + renderOutput(end);
}

/**
 * Keeps texts in order until the budget is spent. The text that exceeds it is cut; a note at the end counts
 * the omitted ones. Images do not count.
 */
export function truncateParts(parts: readonly OutputPart[], policy: TruncationPolicy): OutputPart[] {
  const { mode } = policy;
  let left = policy.limit;
  let omitted = 0;
  const kept = parts.flatMap((part): OutputPart[] => {
    if (part.type !== "input_text") return [part];
    if (left <= 0) {
      omitted++;
      return [];
    }
    const text = truncateText(part.text, { mode, limit: left });
    const bytes = Buffer.byteLength(part.text);
    left -= mode === "tokens" ? tokensOfBytes(bytes) : bytes;
    return [{ ...part, text }];
  });
  return omitted === 0
    ? kept
    : [...kept, { type: "input_text", text: `[omitted ${omitted} text items ...]` }];
}

/** Like `truncateOutput`, but the middle becomes a gap, so that the result can be cut again. */
export function shrinkOutput(output: CapturedOutput, maxBytes: number): CapturedOutput {
  if (keptBytes(output) <= maxBytes) return output;
  const { start, cut, end } = cutMiddle(output, maxBytes);
  return captured(start, cut, end);
}

function cutMiddle(
  output: CapturedOutput,
  budget: number,
): { start: CapturedOutput; cut: Gap; end: CapturedOutput } {
  const startBudget = Math.floor(budget / 2);
  const start = captured(...fitting(output.pieces, startBudget, textStart));
  const end = captured(...fitting(output.pieces.toReversed(), budget - startBudget, textEnd).toReversed());
  const left = (what: keyof Gap) => total(output, what) - total(start, what) - total(end, what);
  return { start, cut: { bytes: left("bytes"), chars: left("chars"), lineFeeds: left("lineFeeds") }, end };
}

/** Returns the first pieces that fit. Gaps cost nothing; a gap next to the cut becomes a part of it. */
function fitting(pieces: readonly Piece[], budget: number, cut: typeof textStart): Piece[] {
  const kept: Piece[] = [];
  let left = budget;
  for (const piece of pieces) {
    const part = typeof piece === "string" ? cut(piece, left) : piece;
    kept.push(part);
    if (part !== piece) break;
    left -= typeof part === "string" ? Buffer.byteLength(part) : 0;
  }
  return kept.slice(0, kept.findLastIndex((piece) => typeof piece === "string" && piece !== "") + 1);
}
