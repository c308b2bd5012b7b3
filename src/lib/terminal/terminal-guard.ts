import { Utf8Stream } from "../utf8.js";
import { type TerminalToken, TerminalTokens } from "./control-sequences.js";

/**
 * Filters what an interactive program writes to the terminal. What programs draw with passes: movement,
 * colours, the alternative screen, the mouse, titles, hyperlinks. These do not:
 * - the clipboard, notifications, file transfer, the working directory and every other OSC not listed below;
 * - DCS, APC, PM and SOS: key definitions, images, and requests whose answer repeats text;
 * - reports of the title or icon name and the answerback string, which would come back as typed input;
 * - resizing, moving and closing the window, printing, and a change of character set away from UTF-8.
 *
 * A line feed without a carriage return becomes ESC D, which means the same: in Node's raw mode the terminal
 * driver still adds a return to every line feed.
 */
export class TerminalGuard {
  readonly #decoder = new Utf8Stream();
  readonly #tokens = new TerminalTokens();
  readonly #state = new TerminalState();
  #isAfterReturn = false;

  push(bytes: Uint8Array): string {
    return this.#filter(this.#tokens.push(this.#decoder.push(bytes)));
  }

  /** The rest, and sequences that restore the terminal, which a killed program cannot do. */
  end(): string {
    const rest = this.#filter(this.#tokens.push(this.#decoder.end())) + this.#filter(this.#tokens.end());
    return rest + this.#state.undo();
  }

  #filter(tokens: Iterable<TerminalToken>): string {
    let passed = "";
    for (const token of tokens) {
      const text = passable(token);
      if (text !== "") this.#state.note(token);
      passed += token.kind === "text" ? this.#withBareLineFeeds(text) : text;
      this.#isAfterReturn = token.kind === "control" && token.character === "\r";
    }
    return passed;
  }

  #withBareLineFeeds(text: string): string {
    const isWholeLineEnd = this.#isAfterReturn && text.startsWith("\n");
    const rest = isWholeLineEnd ? text.slice(1) : text;
    return (isWholeLineEnd ? "\n" : "") + rest.replaceAll("\n", "\x1bD");
  }
}

/** Titles, hyperlinks, the colours of text, background and cursor, and their resets. */
const harmlessOsc = ["0", "1", "2", "8", "10", "11", "12", "110", "111", "112"];
/** Sizes of the window and the text area, and the stack of titles. */
const harmlessWindowOperations = ["14", "16", "18", "19", "22", "23"];
const harmlessEscapes = /^(?:[78=>cDEHM]|[()*+\-./][\x30-\x7e]|#[3-8])$/;
const harmlessControls = "\x07\b\x0b\x0c\r\x0e\x0f";

/** The token in its 7-bit form; "" if it must not reach the terminal. */
function passable(token: TerminalToken): string {
  switch (token.kind) {
    case "text":
      return token.text;
    case "control":
      return harmlessControls.includes(token.character) ? token.character : "";
    case "csi":
      return isHarmlessCsi(token) ? `\x1b[${token.parameters}${token.final}` : "";
    case "string":
      return isHarmlessString(token) ? `\x1b]${token.body}\x1b\\` : "";
    case "escape":
      return harmlessEscapes.test(token.text) ? `\x1b${token.text}` : "";
    default:
      return token satisfies never;
  }
}

function isHarmlessCsi({ parameters, final }: { parameters: string; final: string }): boolean {
  if (final === "i") return false;
  return final !== "t" || harmlessWindowOperations.includes(parameters.split(";", 1)[0] ?? "");
}

function isHarmlessString({ opener, body }: { opener: string; body: string }): boolean {
  return opener === "]" && harmlessOsc.includes(body.split(";", 1)[0] ?? "");
}

/** Private modes that programs leave switched on: keys, screen, mouse, focus reports, pasting, redraws. */
const undoneModes = new Set([
  1, 5, 6, 7, 9, 25, 45, 47, 66, 69, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 1047, 1049,
  2004, 2026, 2027, 2031, 2048,
]);
/** Modes that are on in a fresh terminal: autowrap and the cursor. */
const onByDefault = ["7", "25"];
/** Sequences that are undone by a soft reset: margins, insert mode, keypad, character sets, cursor shape. */
const softStateFinals = ["r", "s", "h", " q"];

/** Records what a program changes in the terminal, so that it can be undone when the program has ended. */
class TerminalState {
  readonly #changedModes = new Set<string>();
  #pushedKeyboards = 0;
  #hasModifiedKeys = false;
  #hasColours = false;
  #hasSoftState = false;

  note(token: TerminalToken): void {
    if (token.kind === "escape") this.#hasSoftState ||= /^[=()*+\-./]/.test(token.text);
    else if (token.kind === "control") this.#hasSoftState ||= token.character === "\x0e";
    else if (token.kind === "csi") this.#noteCsi(token);
  }

  undo(): string {
    const modes = [...this.#changedModes].map(
      (mode) => `\x1b[?${mode}${onByDefault.includes(mode) ? "h" : "l"}`,
    );
    return [
      ...modes,
      this.#pushedKeyboards > 0 ? `\x1b[<${this.#pushedKeyboards}u` : "",
      this.#hasModifiedKeys ? "\x1b[>4m" : "",
      this.#hasSoftState ? "\x1b[!p\x0f\x1b[0 q" : "",
      this.#hasColours ? "\x1b[0m" : "",
    ].join("");
  }

  #noteCsi({ parameters, final }: { parameters: string; final: string }): void {
    if ((final === "h" || final === "l") && parameters.startsWith("?"))
      this.#noteModes(parameters.slice(1), final);
    else if (final === "u") this.#noteKeyboards(parameters);
    else if (final === "m" && parameters.startsWith(">")) this.#hasModifiedKeys = true;
    else if (final === "m") this.#hasColours = !/^0*$/.test(parameters);
    else if (softStateFinals.includes(final)) this.#hasSoftState = true;
  }

  #noteModes(modes: string, final: "h" | "l"): void {
    for (const mode of modes.split(";")) {
      if (!undoneModes.has(Number(mode))) continue;
      if ((final === "h") === onByDefault.includes(mode)) this.#changedModes.delete(mode);
      else this.#changedModes.add(mode);
    }
  }

  #noteKeyboards(parameters: string): void {
    if (parameters.startsWith(">")) this.#pushedKeyboards += 1;
    else if (parameters.startsWith("<"))
      this.#pushedKeyboards = Math.max(
        0,
        this.#pushedKeyboards - (Number.parseInt(parameters.slice(1), 10) || 1),
      );
  }
}
