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

const sticky = (source: string) => new RegExp(source, "y");
const printable = sticky(String.raw`[^\x00-\x1f\x7f-\x9f]+`);
const wholeSequence = sticky(
  String.raw`\x1b(?<rest>\[[\x30-\x3f]{0,64}[\x20-\x2f]{0,8}[\x40-\x7e]|O[\x40-\x7e]|[^\x1b\[O])`,
);
const begunSequence = sticky(String.raw`\x1b(?:\[[\x30-\x3f]{0,64}[\x20-\x2f]{0,8}|O)?$`);

/**
 * Turns the bytes of a terminal in raw mode into keys. Sequences and characters may be split between two
 * pieces. Only time can tell whether an ESC is the Escape key or the start of a sequence: while `isUndecided`
 * is true, call `settle` if no more bytes arrive in time.
 */
export class KeyDecoder {
  readonly #utf8 = new Utf8Stream();
  #pending = "";
  #paste: { text: string; isCut: boolean } | null = null;

  push(bytes: Uint8Array): Key[] {
    return [...this.#decode(this.#pending + this.#utf8.push(bytes))];
  }

  get isUndecided(): boolean {
    return this.#paste === null && this.#pending !== "";
  }

  /** Treats the pending ESC as the Escape key, because nothing followed it. */
  settle(): Key[] {
    if (!this.isUndecided) return [];
    this.#pending = "";
    return [{ kind: "key", name: "escape" }];
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
      const text = matchAt(printable, input, at)?.[0];
      if (text !== undefined) {
        yield { kind: "text", text };
        at += text.length;
      } else if (matchAt(begunSequence, input, at)) {
        this.#pending = input.slice(at);
        return;
      } else if (input.startsWith(pasteStart, at)) {
        this.#paste = { text: "", isCut: false };
        at += pasteStart.length;
      } else {
        const sequence = matchAt(wholeSequence, input, at);
        const name = sequence ? sequenceKeys[sequence.groups?.rest ?? ""] : controlKeys[input.charAt(at)];
        if (name !== undefined) yield { kind: "key", name };
        at += sequence?.[0].length ?? 1;
      }
    }
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
