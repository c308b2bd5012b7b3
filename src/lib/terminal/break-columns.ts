import { displayWidth } from "./display-width.js";

/** Made when it is needed first, since that takes seven milliseconds. */
let segmenter: Intl.Segmenter | undefined;
/** Going through a long text takes the segmenter a time that grows with its square: it gets it in pieces, in UTF-16 units. */
const PIECE_LENGTH = 1024;

/** Rows that are at most so many columns wide, one at least. Nothing is lost at a seam, not even a space. */
export function breakColumns(text: string, columns: number): string[] {
  const rows: string[] = [];
  let row = "";
  let width = 0;
  for (const segment of graphemesOf(text)) {
    const segmentWidth = displayWidth(segment);
    if (width + segmentWidth > columns && row !== "") {
      rows.push(row);
      row = "";
      width = 0;
    }
    row += segment;
    width += segmentWidth;
  }
  return [...rows, row];
}

/**
 * Rows that are at most so many columns wide and end with a word where they can: only one that is wider than a row is broken. Nothing is
 * lost at a seam: a space that has no room at the end of a row begins the next one. Not wrap-ansi: it composes characters anew, and what
 * is approved has to be what is shown.
 */
export function breakBetweenWords(text: string, columns: number): string[] {
  const rows: string[] = [];
  let row = "";
  let width = 0;
  const endRow = () => {
    rows.push(row);
    row = "";
    width = 0;
  };
  for (const word of text.split(wordSeam)) {
    const wordWidth = word.length > PIECE_LENGTH ? Number.POSITIVE_INFINITY : displayWidth(word.trimEnd());
    if (row !== "" && wordWidth <= columns && width + wordWidth > columns) endRow();
    for (const segment of graphemesOf(word)) {
      const segmentWidth = displayWidth(segment);
      if (row !== "" && width + segmentWidth > columns) endRow();
      row += segment;
      width += segmentWidth;
    }
  }
  return [...rows, row];
}

/** Behind a space that is a character of its own. */
const wordSeam = /(?<= )(?![\p{M}\u200d])/u;

/** Lines that are at most so many columns wide where no single word is wider; what goes on below is indented as its line is. */
export function wrapLines(text: string, columns: number): string {
  return text
    .split("\n")
    .flatMap((line) => {
      if (displayWidth(line) <= columns) return [line];
      const indent = /^ */.exec(line)?.[0].slice(0, columns / 2) ?? "";
      return wrapWords(line.slice(indent.length), columns - indent.length).map((row) => indent + row);
    })
    .join("\n");
}

/** Rows of whole words, at most so many columns wide where no single word is wider. */
export function wrapWords(text: string, columns: number): string[] {
  const rows: string[] = [];
  for (const word of text.split(" ")) {
    const last = rows.at(-1);
    if (last === undefined || displayWidth(last) + 1 + displayWidth(word) > columns) rows.push(word);
    else rows[rows.length - 1] = `${last} ${word}`;
  }
  return rows;
}

/** What a piece ends with may go on in the next one; only one that fills a whole piece is cut. */
function* graphemesOf(text: string): Iterable<string> {
  for (let at = 0; at < text.length; ) {
    // Half of a character at the end would hide that it belongs to what is before it.
    const piece = text.slice(at, at + PIECE_LENGTH).replace(/(?<=.)[\ud800-\udbff]$/s, "");
    const segments = Array.from(graphemeSegmenter().segment(piece), ({ segment }) => segment);
    const isRest = at + piece.length === text.length;
    const whole = isRest || segments.length === 1 ? segments : segments.slice(0, -1);
    yield* whole;
    for (const segment of whole) at += segment.length;
  }
}

function graphemeSegmenter(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter;
}
