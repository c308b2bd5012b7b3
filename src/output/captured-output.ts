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
  return pieces
    .map((piece) => (typeof piece === "string" ? piece : `\n... ${piece.bytes} bytes omitted ...\n`))
    .join("");
}

const countsOfText: Record<keyof Gap, (text: string) => number> = {
  bytes: Buffer.byteLength,
  // Code points, not UTF-16 units.
  chars: (text) => text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, ".").length,
  lineFeeds: countLineFeeds,
};

/** Of the whole output. */
export function total({ pieces }: CapturedOutput, what: keyof Gap): number {
  const counts = pieces.map((piece) => (typeof piece === "string" ? countsOfText[what](piece) : piece[what]));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Bytes of the texts alone. */
export function keptBytes({ pieces }: CapturedOutput): number {
  return total({ pieces: pieces.filter((piece) => typeof piece === "string") }, "bytes");
}

/** Lines of the whole output: a final line feed adds none, and a carriage return alone does not end one. */
export function countLines(output: CapturedOutput): number {
  const last = output.pieces.at(-1);
  const hasUnendedLine = last !== undefined && !(typeof last === "string" && last.endsWith("\n"));
  return total(output, "lineFeeds") + (hasUnendedLine ? 1 : 0);
}

function countLineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
