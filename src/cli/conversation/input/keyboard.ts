import { setImmediate as nextRound } from "node:timers/promises";
import type { CliContext } from "../../context.js";
import { type Key, KeyDecoder } from "./keys.js";

/** After so long an ESC was a key, and not the beginning of a sequence. */
const ESCAPE_MS = 50;

/** Who is told of keys. */
export interface KeyListener {
  press(key: Key): void;
  /** The terminal gives no more input. */
  leave(): void;
}

/**
 * The keyboard of a terminal in raw mode: every key comes as it is pressed, ctrl-C too. It is taken before anything else of a conversation
 * is there, and what is typed meanwhile waits for whoever listens.
 */
export class Keyboard {
  readonly #context: Pick<CliContext, "stdin" | "interrupt">;
  readonly #decoder = new KeyDecoder();
  readonly #early: Key[] = [];
  #listener: KeyListener | null = null;
  #hasEnded = false;
  /** What was typed before raw mode has lines that end as lines of a file do. */
  #readsLines = true;
  #timer: NodeJS.Timeout | undefined;

  private constructor(context: Pick<CliContext, "stdin" | "interrupt">) {
    this.#context = context;
  }

  /** Resolves once it has all that was typed before. */
  static async open(context: Pick<CliContext, "stdin" | "interrupt">): Promise<Keyboard> {
    const keyboard = new Keyboard(context);
    const { stdin } = context;
    stdin.setRawMode?.(true);
    stdin.on("data", keyboard.#read);
    stdin.once("end", keyboard.#end);
    // A terminal that is gone cannot be read; the signal of the context tells.
    stdin.on("error", keyboard.#end);
    // What the terminal holds already is read in the next round of the event loop.
    await nextRound();
    await nextRound();
    keyboard.#readsLines = false;
    return keyboard;
  }

  /** Tells of every key from now on, and first of those that were pressed so far. */
  listen(listener: KeyListener): void {
    this.#listener = listener;
    for (const key of this.#early.splice(0)) listener.press(key);
    if (this.#hasEnded) listener.leave();
  }

  /** Takes no more keys: ctrl-C is a signal again, as it is everywhere else. */
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
    if (this.#decoder.isUndecided) this.#timer = setTimeout(this.#settle, ESCAPE_MS);
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
    // Nothing has begun that it could interrupt but the start itself.
    else if (key.kind === "key" && key.name === "interrupt") this.#context.interrupt();
    else this.#early.push(key);
  }
}

function withReturns(bytes: Uint8Array): Uint8Array {
  return bytes.map((byte) => (byte === 0x0a ? 0x0d : byte));
}
