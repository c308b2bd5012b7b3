import { neutralise, neutraliseLine } from "../../../lib/terminal/terminal.js";
import type { Fact, ShownText } from "./view-model.js";

/** Names and single values are cut after so many characters. */
const MAX_LINE_CHARS = 300;

/** A name or a value from outside, as one short line that hides nothing. */
export function shownLine(text: string): string {
  const line = neutraliseLine(text.slice(0, 4 * MAX_LINE_CHARS));
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS - 1)}…` : line;
}

/** A text from outside. If it is too long, its beginning and its end stay. */
export function shownText(text: string, maxChars: number): ShownText {
  if (text.length <= maxChars) return { head: neutralise(text), omittedBytes: 0, tail: "" };
  const half = Math.floor(maxChars / 2);
  const omitted = text.slice(half, text.length - half);
  return {
    head: neutralise(text.slice(0, half)),
    omittedBytes: Buffer.byteLength(omitted),
    tail: neutralise(text.slice(text.length - half)),
  };
}

export function fact(name: string, value: string | number | boolean): Fact {
  return { name: shownLine(name), value: shownLine(String(value)) };
}
