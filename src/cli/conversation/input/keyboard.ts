import { setImmediate as nextRound } from "node:timers/promises";
import type { CliContext } from "../../../command/index.js";
import { type Key, KeyDecoder } from "./keys.js";

export interface KeyListener {
  press(key: Key): void;
  /** Called when the terminal has no more input. */
  leave(): void;
}

/**
 * The keyboard of a terminal in raw mode: every key arrives as it is pressed, ctrl-C too. It is opened before
 * the rest of the conversation, and keeps what is typed until there is a listener.
 */
export class Keyboard {
  readonly #context: Pick<CliContext, "stdin" | "interrupt">;
  readonly #decoder = new KeyDecoder((answer) => this.onAnswer?.(answer));
  readonly #early: Key[] = [];
  #listener: KeyListener | null = null;
  /** Called with what the terminal answers to questions, and with other sequences that are no keys. */
  onAnswer: ((answer: string) => void) | null = null;
  #hasEnded = false;
  /** Lines that were typed before raw mode end with a newline, not with a carriage return. */
  #readsLines = true;
  #timer: NodeJS.Timeout | undefined;

  private constructor(context: Pick<CliContext, "stdin" | "interrupt">) {
    this.#context = context;
  }

  /** Resolves once it has read everything that was typed before. */
  static async open(context: Pick<CliContext, "stdin" | "interrupt">): Promise<Keyboard> {
    const keyboard = new Keyboard(context);
    const { stdin } = context;
    stdin.setRawMode?.(true);
    stdin.on("data", keyboard.#read);
    stdin.once("end", keyboard.#end);
    // When the terminal is gone, reading fails; SIGHUP then aborts the context's signal.
    stdin.on("error", keyboard.#end);
    // An earlier keyboard has paused it.
    stdin.resume();
    // Input that is there already is read in the next rounds of the event loop.
    await nextRound();
    await nextRound();
    keyboard.#readsLines = false;
    return keyboard;
  }

  /** Reports the keys that were pressed so far, and every key from now on. */
  listen(listener: KeyListener): void {
    this.#listener = listener;
    for (const key of this.#early.splice(0)) listener.press(key);
    if (this.#hasEnded) listener.leave();
  }

  /** Leaves raw mode: ctrl-C is a signal again. */
  release(): void {
    const { stdin } = this.#context;
    clearTimeout(this.#timer);
    stdin.off("data", this.#read);
    stdin.off("end", this.#end);
    stdin.pause();
    stdin.setRawMode?.(false);
  }

  readonly #read = (bytes: Uint8Array): void => {
    clearTimeout(this.#timer);
    for (const key of this.#decoder.push(this.#readsLines ? withReturns(bytes) : bytes)) this.#press(key);
    const { undecidedMs } = this.#decoder;
    if (undecidedMs !== null) this.#timer = setTimeout(this.#settle, undecidedMs);
  };

  readonly #settle = (): void => {
    for (const key of this.#decoder.settle()) this.#press(key);
  };

  readonly #end = (): void => {
    this.#hasEnded = true;
    this.#listener?.leave();
  };

  #press(key: Key): void {
    if (this.#listener !== null) this.#listener.press(key);
    // Before there is a listener, ctrl-C interrupts the start.
    else if (key.kind === "key" && key.name === "interrupt") this.#context.interrupt();
    else this.#early.push(key);
  }
}

function withReturns(bytes: Uint8Array): Uint8Array {
  return bytes.map((byte) => (byte === 0x0a ? 0x0d : byte));
}
