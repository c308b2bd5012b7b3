import { Utf8Stream } from "../../../lib/utf8.js";
import type { EditingKey } from "./editor.js";

export type Key =
  /** One or more printable characters that arrived together. */
  | { kind: "text"; text: string }
  /** A whole paste, with newlines as `\n`. Never interpreted as keys. */
  | { kind: "paste"; text: string; isCut: boolean }
  | { kind: "key"; name: KeyName };

export type KeyName =
  | EditingKey
  | "enter"
  | "tab"
  | "escape"
  | "interrupt"
  | "end-of-input"
  | "unfold"
  | "search"
  | "redraw"
  | "suspend";

/** Longer pastes are cut. In UTF-16 units; a model accepts no longer message. */
const LONGEST_PASTE = 1_048_576;

const pasteStart = "\x1b[200~";
const pasteEnd = "\x1b[201~";

const controlKeys: Record<string, KeyName> = {
  "\x01": "line-start",
  "\x02": "left",
  "\x03": "interrupt",
  "\x04": "end-of-input",
  "\x05": "line-end",
  "\x06": "right",
  "\b": "backspace",
  "\t": "tab",
  "\n": "newline",
  "\x0b": "delete-to-end",
  "\x0c": "redraw",
  "\r": "enter",
  "\x0e": "down",
  "\x0f": "unfold",
  "\x10": "up",
  "\x12": "search",
  "\x15": "delete-to-start",
  "\x17": "delete-word-left",
  "\x19": "yank",
  "\x1a": "suspend",
  "\x1b": "escape",
  "\x7f": "backspace",
};

/** Keys by the characters that follow the ESC. */
const sequenceKeys: Record<string, KeyName> = {
  "\r": "newline",
  "\n": "newline",
  "\x7f": "delete-word-left",
  "\b": "delete-word-left",
  b: "word-left",
  f: "word-right",
  d: "delete-word-right",
  "[A": "up",
  "[B": "down",
  "[C": "right",
  "[D": "left",
  "[H": "line-start",
  "[F": "line-end",
  "[1~": "line-start",
  "[4~": "line-end",
  "[7~": "line-start",
  "[8~": "line-end",
  "[3~": "delete",
  "[1;3C": "word-right",
  "[1;5C": "word-right",
  "[1;3D": "word-left",
  "[1;5D": "word-left",
  "[3;5~": "delete-word-right",
  "[3;3~": "delete-word-right",
  // Enter with shift, alt or ctrl, as terminals with extended keys report it.
  "[13;2u": "newline",
  "[13;3u": "newline",
  "[13;5u": "newline",
  "[27;2;13~": "newline",
  "[27;3;13~": "newline",
  "[27;5;13~": "newline",
  OA: "up",
  OB: "down",
  OC: "right",
  OD: "left",
  OH: "line-start",
  OF: "line-end",
  OM: "enter",
};

/** If nothing follows an ESC within this time, it was the Escape key and not the start of a sequence. */
const ESCAPE_MS = 50;
/** Of a sequence that has begun, the rest comes within this time. It is longer since no person types the beginning of one. */
const REST_MS = 1000;
/** The rest of a longer sequence is read and forgotten. In UTF-16 units. */
const LONGEST_SEQUENCE = 1024;

const sticky = (source: string) => new RegExp(source, "y");
const printable = sticky(String.raw`[^\x00-\x1f\x7f-\x9f]+`);
/** What is in a control string (DCS, SOS, OSC, PM, APC), and what ends it. Any other control character breaks it off. */
const stringBody = String.raw`[^\x00-\x1f\x7f-\x9f]*`;
const stringEnd = String.raw`(?:\x1b\\|\x07)`;
const wholeSequence = sticky(
  String.raw`\x1b(?:(?<csi>\[[\x20-\x3f]*[\x40-\x7e])|(?<string>[PX\]^_]${stringBody})${stringEnd}` +
    String.raw`|\[[\x20-\x3f]+|[PX\]^_]${stringBody}|(?<other>O[\x40-\x7e]|[^\x1b\[O]))`,
);
const begunSequence = sticky(String.raw`\x1b(?:\[[\x20-\x3f]*|O|[PX\]^_]${stringBody}\x1b?)?$`);
const restOfString = sticky(`${stringBody}(?<end>${stringEnd})?`);
const restOfSequence = sticky(String.raw`[\x20-\x3f]*(?<end>[\x40-\x7e])?`);

/**
 * Turns the bytes of a terminal in raw mode into keys. Sequences and characters may be split between two
 * pieces. Only time can tell whether an ESC is the Escape key or the start of a sequence: if no more bytes arrive within
 * `undecidedMs`, call `settle`. What a terminal answers to questions is no key.
 */
export class KeyDecoder {
  readonly #onAnswer: (answer: string) => void;
  readonly #utf8 = new Utf8Stream();
  #pending = "";
  #paste: { text: string; isCut: boolean } | null = null;
  /** The rest of the sequence that is read and forgotten; null outside of one. */
  #forgotten: RegExp | null = null;

  /** `onAnswer` is called with each sequence that is no key: from the character after the ESC on, a string without its end. */
  constructor(onAnswer: (answer: string) => void = () => undefined) {
    this.#onAnswer = onAnswer;
  }

  push(bytes: Uint8Array): Key[] {
    return [...this.#decode(this.#pending + this.#utf8.push(bytes))];
  }

  /** How long to wait for more of what has begun; null if there is nothing to wait for. */
  get undecidedMs(): number | null {
    if (this.#paste !== null || (this.#pending === "" && this.#forgotten === null)) return null;
    return this.#forgotten === null && this.#pending.length <= 2 ? ESCAPE_MS : REST_MS;
  }

  /** Treats a pending ESC as the Escape key, because nothing followed it. The beginning of anything else is forgotten. */
  settle(): Key[] {
    if (this.undecidedMs === null) return [];
    const isEscape = this.#forgotten === null && ["\x1b", "\x1b[", "\x1bO"].includes(this.#pending);
    this.#pending = "";
    this.#forgotten = null;
    return isEscape ? [{ kind: "key", name: "escape" }] : [];
  }

  *#decode(input: string): Iterable<Key> {
    this.#pending = "";
    for (let at = 0; at < input.length; ) {
      if (this.#paste !== null) {
        const { key, next } = this.#readPaste(this.#paste, input, at);
        if (key !== null) yield key;
        at = next;
        continue;
      }
      if (this.#forgotten !== null) {
        at = this.#forget(this.#forgotten, input, at);
        continue;
      }
      const text = matchAt(printable, input, at)?.[0];
      if (text !== undefined) {
        yield { kind: "text", text };
        at += text.length;
      } else if (matchAt(begunSequence, input, at)) {
        this.#keep(input.slice(at));
        return;
      } else if (input.startsWith(pasteStart, at)) {
        this.#paste = { text: "", isCut: false };
        at += pasteStart.length;
      } else {
        const sequence = matchAt(wholeSequence, input, at);
        const { csi, string: answer = csi, other = csi } = sequence?.groups ?? {};
        const name = sequence ? sequenceKeys[other ?? ""] : controlKeys[input.charAt(at)];
        if (name !== undefined) yield { kind: "key", name };
        else if (answer !== undefined) this.#onAnswer(answer);
        at += sequence?.[0].length ?? 1;
      }
    }
  }

  /** The rest of the sequence at the end of the input is still to come. */
  #keep(begun: string): void {
    const isTooLong = begun.length > LONGEST_SEQUENCE;
    if (isTooLong) this.#forgotten = begun.startsWith("\x1b[") ? restOfSequence : restOfString;
    this.#pending = isTooLong ? endOf(begun) : begun;
  }

  /** Returns where the input goes on behind what belongs to the sequence. */
  #forget(rest: RegExp, input: string, at: number): number {
    const found = matchAt(rest, input, at);
    const next = at + (found?.[0].length ?? 0);
    const isOver = found?.groups?.end !== undefined;
    if (!isOver && next === input.length) return next;
    if (!isOver && rest === restOfString && input.slice(next) === "\x1b") {
      this.#pending = "\x1b";
      return input.length;
    }
    this.#forgotten = null;
    return next;
  }

  #readPaste(
    paste: { text: string; isCut: boolean },
    input: string,
    at: number,
  ): { key: Key | null; next: number } {
    const end = input.indexOf(pasteEnd, at);
    const isOver = end !== -1;
    const stop = isOver ? end : input.length - partialMatch(input.slice(at), pasteEnd);
    const text = paste.text + input.slice(at, stop);
    paste.isCut ||= text.length > LONGEST_PASTE;
    paste.text = text.slice(0, LONGEST_PASTE);
    if (!isOver) {
      this.#pending = input.slice(stop);
      return { key: null, next: input.length };
    }
    this.#paste = null;
    const key: Key = { kind: "paste", text: paste.text.replaceAll(/\r\n?/g, "\n"), isCut: paste.isCut };
    return { key, next: end + pasteEnd.length };
  }
}

/** The ESC that may begin the end of a string. */
function endOf(begun: string): string {
  return begun.endsWith("\x1b") ? "\x1b" : "";
}

/** How many characters at the end of `text` may be the beginning of `mark`. */
function partialMatch(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
    if (text.endsWith(mark.slice(0, length))) return length;
  return 0;
}

function matchAt(pattern: RegExp, input: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(input);
}
