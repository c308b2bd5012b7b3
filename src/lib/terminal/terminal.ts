import { Utf8Stream } from "../utf8.js";
import { type TerminalToken, TerminalTokens } from "./control-sequences.js";

export interface NeutraliseOptions {
  /** Keep colours and styles (SGR), and reset them at the end. Default: false. */
  colours?: boolean | undefined;
  /** Keep invisible characters and those that change the text direction. Default: false. */
  keepsInvisible?: boolean | undefined;
}

/**
 * Makes a text safe to show on a terminal: nothing moves the cursor, changes the terminal's state or is
 * hidden. Sequences are removed. Other control characters (a bell, a bidi control, an ESC) become visible
 * signs, and a carriage return a new line, so that nothing is overwritten. Newlines and tabs stay.
 */
export function neutralise(text: string, options: NeutraliseOptions = {}): string {
  if (!notable.test(text)) return text;
  const neutraliser = new Neutraliser(options);
  return neutraliser.push(text) + neutraliser.end();
}

/** Like `neutralise`, but newlines and tabs become signs too. For names, table cells and live lines. */
export function neutraliseLine(text: string, options: NeutraliseOptions = {}): string {
  return neutralise(text, options).replace(/[\n\t]/g, visibleSign);
}

/** `neutralise` for a stream of bytes, whose pieces may split characters and sequences. */
export class NeutralStream {
  readonly #decoder = new Utf8Stream();
  readonly #neutraliser: Neutraliser;

  constructor(options: NeutraliseOptions = {}) {
    this.#neutraliser = new Neutraliser(options);
  }

  push(bytes: Uint8Array): string {
    return this.#neutraliser.push(this.#decoder.push(bytes));
  }

  end(): string {
    return this.#neutraliser.push(this.#decoder.end()) + this.#neutraliser.end();
  }
}

/** `neutralise` for a text that arrives in pieces, which may split control sequences and surrogate pairs. */
export class NeutralText {
  readonly #stream: NeutralStream;
  #half = "";

  constructor(options: NeutraliseOptions = {}) {
    this.#stream = new NeutralStream(options);
  }

  push(piece: string): string {
    const text = this.#half + piece;
    const isCut = /[\ud800-\udbff]$/.test(text);
    this.#half = isCut ? text.slice(-1) : "";
    return this.#stream.push(Buffer.from(isCut ? text.slice(0, -1) : text));
  }
}

class Neutraliser {
  readonly #keepsColours: boolean;
  readonly #keepsInvisible: boolean;
  readonly #tokens = new TerminalTokens();
  #hasOpenReturn = false;
  #isColoured = false;

  constructor(options: NeutraliseOptions) {
    this.#keepsColours = options.colours ?? false;
    this.#keepsInvisible = options.keepsInvisible ?? false;
  }

  push(text: string): string {
    return this.#render(this.#tokens.push(text));
  }

  end(): string {
    const rest = this.#render(this.#tokens.end());
    return this.#isColoured ? `${rest}\x1b[0m` : rest;
  }

  #render(tokens: Iterable<TerminalToken>): string {
    let shown = "";
    for (const token of tokens) shown += this.#settleReturn(token) + this.#show(token);
    return shown;
  }

  /** A carriage return before a newline belongs to the line's end. Any other would overwrite the line. */
  #settleReturn(next: TerminalToken): string {
    if (!this.#hasOpenReturn || (next.kind === "control" && next.character === "\r")) return "";
    this.#hasOpenReturn = false;
    return next.kind === "text" && next.text.startsWith("\n") ? "" : "\n";
  }

  #show(token: TerminalToken): string {
    switch (token.kind) {
      case "text":
        return this.#keepsInvisible ? token.text : token.text.replace(invisible, visibleSign);
      case "control":
        if (token.character !== "\r") return visibleSign(token.character);
        this.#hasOpenReturn = true;
        return "";
      case "csi":
        return token.final === "m" && this.#keepsColours ? this.#colour(token.parameters) : "";
      case "string":
      case "escape":
        return "";
      default:
        return token satisfies never;
    }
  }

  #colour(parameters: string): string {
    const kept = keptColours(parameters);
    if (kept === null) return "";
    this.#isColoured = kept !== "" && kept !== "0";
    return `\x1b[${kept}m`;
  }
}

/** Characters without width, or that change the text direction. Emoji variation selectors are harmless. */
const invisible = /(?![\ufe0e\ufe0f])[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** Anything that `neutralise` could change. Most texts have nothing of it, and need not be taken apart. */
const notable = new RegExp(`[^\\P{Cc}\\n\\t]|${invisible.source}`, "u");

/** ␇ for a bell, <U+202E> for a right-to-left override. */
function visibleSign(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "␡";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/**
 * The harmless part of an SGR sequence: colours, bold, italic, underline, reverse and their ends, but no
 * concealed or blinking text and no fonts. Null if nothing is left; "" is a plain reset.
 */
function keptColours(parameters: string): string | null {
  if (parameters === "") return "";
  if (!/^[\d;:]*$/.test(parameters)) return null;
  const kept: string[] = [];
  const items = parameters.split(";");
  for (let at = 0; at < items.length; ) {
    const length = itemLength(items, at);
    if (length === 0) break;
    if (isHarmless(items[at] ?? "")) kept.push(...items.slice(at, at + length));
    at += length;
  }
  return kept.length === 0 ? null : kept.join(";");
}

const extendedColours = [38, 48, 58];

/** `38;5;N` and `38;2;R;G;B` are single items of three and five numbers. 0 if it is incomplete. */
function itemLength(items: string[], at: number): number {
  if (!extendedColours.includes(Number(items[at]))) return 1;
  const length = items[at + 1] === "5" ? 3 : items[at + 1] === "2" ? 5 : 0;
  return at + length <= items.length ? length : 0;
}

function isHarmless(item: string): boolean {
  const code = Number(item.split(":", 1)[0]);
  return (
    code <= 4 || code === 7 || code === 9 || (code >= 21 && code <= 49) || isBrightOrUnderlineColour(code)
  );
}

function isBrightOrUnderlineColour(code: number): boolean {
  return code === 58 || code === 59 || (code >= 90 && code <= 97) || (code >= 100 && code <= 107);
}
