/** A part of an output that was not kept. */
export interface Gap {
  bytes: number;
  chars: number;
  lineFeeds: number;
}

export type Piece = string | Gap;

/**
 * The output of a command as far as it was kept: texts in order, with a gap wherever something was dropped. Counts are of
 * the whole output, gaps included, so that whoever cuts further can still say exactly how much is missing.
 */
export interface CapturedOutput {
  readonly pieces: readonly Piece[];
}

export function captured(...parts: readonly (Piece | CapturedOutput)[]): CapturedOutput {
  const pieces = parts.flatMap((part) =>
    typeof part === "object" && "pieces" in part ? part.pieces : [part],
  );
  return { pieces: pieces.filter((piece) => (typeof piece === "string" ? piece !== "" : piece.bytes > 0)) };
}

/** The text with each gap announced where it is. */
export function renderOutput({ pieces }: CapturedOutput): string {
  return pieces.map((piece) => (typeof piece === "string" ? piece : gapNotice(piece))).join("");
}

function gapNotice({ bytes }: Pick<Gap, "bytes">): string {
  return `\n... ${bytes} bytes omitted ...\n`;
}

export function totalBytes({ pieces }: CapturedOutput): number {
  return sum(pieces, (piece) => (typeof piece === "string" ? Buffer.byteLength(piece) : piece.bytes));
}

/** Bytes of the texts alone. */
export function keptBytes({ pieces }: CapturedOutput): number {
  return sum(pieces, (piece) => (typeof piece === "string" ? Buffer.byteLength(piece) : 0));
}

export function totalChars({ pieces }: CapturedOutput): number {
  return sum(pieces, (piece) => (typeof piece === "string" ? countChars(piece) : piece.chars));
}

export function totalLineFeeds({ pieces }: CapturedOutput): number {
  return sum(pieces, (piece) => (typeof piece === "string" ? countLineFeeds(piece) : piece.lineFeeds));
}

/** Lines of the whole output: a final line feed adds none, and a carriage return alone does not end one. */
export function countLines(output: CapturedOutput): number {
  const last = output.pieces.at(-1);
  const hasUnendedLine = last !== undefined && !(typeof last === "string" && last.endsWith("\n"));
  return totalLineFeeds(output) + (hasUnendedLine ? 1 : 0);
}

/** Code points, not UTF-16 units. */
function countChars(text: string): number {
  let pairs = 0;
  for (let at = 0; at < text.length - 1; at++) {
    if (isHighSurrogate(text.charCodeAt(at)) && isLowSurrogate(text.charCodeAt(at + 1))) pairs++;
  }
  return text.length - pairs;
}

function countLineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

function sum<T>(items: readonly T[], measure: (item: T) => number): number {
  return items.reduce((total, item) => total + measure(item), 0);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
