import type { TerminalToken } from "./control-sequences.js";

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
export class TerminalState {
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
