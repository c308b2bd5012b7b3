export interface TextLine {
  text: string;
  /** Empty only for a last line without an ending. */
  ending: string;
}

/** Splits after LF, CRLF and CR. A final ending adds no empty line. */
export function splitLines(text: string): TextLine[] {
  return split(text, /\r\n|\n|\r/g);
}

/** Splits after LF alone: a CR stays in its line. */
export function splitAtLineFeeds(text: string): TextLine[] {
  return split(text, /\n/g);
}

export function joinLines(lines: readonly TextLine[]): string {
  return lines.map(({ text, ending }) => text + ending).join("");
}

function split(text: string, endings: RegExp): TextLine[] {
  const lines: TextLine[] = [];
  let start = 0;
  for (const { 0: ending, index } of text.matchAll(endings)) {
    lines.push({ text: text.slice(start, index), ending });
    start = index + ending.length;
  }
  if (start < text.length) lines.push({ text: text.slice(start), ending: "" });
  return lines;
}
