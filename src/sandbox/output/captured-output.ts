/** The size of a part of an output that was not kept. */
export interface Gap {
  bytes: number;
  chars: number;
  lineFeeds: number;
}

export type Piece = string | Gap;

/**
 * The kept texts of a command's output, in order, with a gap wherever something was dropped. Gaps have
 * counts, so that the sizes of the whole output stay known even if it is cut again.
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

/** Renders the text with a note in place of each gap. */
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

/** Counts the whole output, including gaps. */
export function total({ pieces }: CapturedOutput, what: keyof Gap): number {
  const counts = pieces.map((piece) => (typeof piece === "string" ? countsOfText[what](piece) : piece[what]));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Counts only the texts, without gaps. */
export function keptBytes({ pieces }: CapturedOutput): number {
  return total({ pieces: pieces.filter((piece) => typeof piece === "string") }, "bytes");
}

/** Counts the lines of the whole output. Only line feeds end a line, and the last line may have none. */
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
