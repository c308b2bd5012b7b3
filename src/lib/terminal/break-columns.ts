import { displayWidth } from "./display-width.js";

/** Created when it is first needed, since that takes seven milliseconds. */
let segmenter: Intl.Segmenter | undefined;
/** The length of a piece in UTF-16 units. The segmenter's time grows with the square of a text's length, so it gets pieces. */
const PIECE_LENGTH = 1024;
const ascii = /^[\x20-\x7e]*$/;

/** Rows of at most `columns` columns, at least one. No character is lost, not even a space. */
export function breakColumns(text: string, columns: number): string[] {
  // Segmenting a megabyte takes seconds.
  if (ascii.test(text)) return text.match(new RegExp(`.{1,${Math.max(1, columns)}}`, "g")) ?? [""];
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
 * Rows of at most `columns` columns, broken between words where possible. No character is lost: a space
 * without room at the end of a row begins the next one. Not wrap-ansi: it normalises characters, but a person
 * must approve exactly what is shown.
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

/** The place after a space that no combining mark changes. */
const wordSeam = /(?<= )(?![\p{M}\u200d])/u;

/** Wraps each line between words, with its indentation. Wider words are not broken. */
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

/** Rows of whole words. Words that are wider than `columns` are not broken. */
export function wrapWords(text: string, columns: number): string[] {
  const rows: string[] = [];
  for (const word of text.split(" ")) {
    const last = rows.at(-1);
    if (last === undefined || displayWidth(last) + 1 + displayWidth(word) > columns) rows.push(word);
    else rows[rows.length - 1] = `${last} ${word}`;
  }
  return rows;
}

/** The last grapheme of a piece may continue in the next one, so it only counts if it fills the piece. */
function* graphemesOf(text: string): Iterable<string> {
  for (let at = 0; at < text.length; ) {
    // Half of a surrogate pair at the end would hide that it belongs to the grapheme before it.
    const piece = text.slice(at, at + PIECE_LENGTH).replace(/(?<=.)[\ud800-\udbff]$/s, "");
    const segments = Array.from(graphemeSegmenter().segment(piece), ({ segment }) => segment);
    const isRest = at + piece.length === text.length;
    const whole = isRest || segments.length === 1 ? segments : segments.slice(0, -1);
    yield* whole;
    for (const segment of whole) at += segment.length;
  }
}

/** Created when it is first needed: that takes milliseconds. */
export function graphemeSegmenter(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter;
}
