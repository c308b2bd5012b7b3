import { NEW, type SpelledTexts, type State, type Step } from "./spelled-texts.js";

/** `start` and `end` are counted from the beginning of the stream; `text` is the number of the text. */
export type OnFound = (start: number, end: number, text: number) => void;

/** Looks for texts in a stream, piece by piece, in time proportional to its length. */
export class SpelledSearch {
  readonly #texts: SpelledTexts;
  readonly #onFound: OnFound;
  #state: State;
  /** Positions at which the matches of the state begin, in the same order. Only the first `#count` of them count. */
  #starts: number[] = [];
  #nextStarts: number[] = [];
  #count = 0;
  #position = 0;

  constructor(texts: SpelledTexts, onFound: OnFound) {
    this.#texts = texts;
    this.#onFound = onFound;
    this.#state = texts.nothing;
  }

  /** Position of the oldest form that may still be completed; the end of the stream so far if there is none. */
  get pendingFrom(): number {
    return (this.#count > 0 ? this.#starts[0] : undefined) ?? this.#position;
  }

  scan(data: Uint8Array): void {
    const texts = this.#texts;
    let state = this.#state;
    for (let at = 0; at < data.length; at++) {
      const byte = data[at] ?? 0;
      const step = state.steps[byte] ?? texts.step(state, byte);
      if (step.continued.length + step.found.length > 0) this.#follow(step, this.#position + at);
      else if (state !== texts.nothing) this.#count = 0;
      state = step.to;
    }
    this.#state = state;
    this.#position += data.length;
  }

  #follow({ continued, found }: Step, position: number): void {
    const [starts, next] = [this.#starts, this.#nextStarts];
    for (const { continued: match, text } of found)
      this.#onFound(match === NEW ? position : (starts[match] ?? 0), position + 1, text);
    for (let at = 0; at < continued.length; at++) {
      const match = continued[at] ?? NEW;
      next[at] = match === NEW ? position : (starts[match] ?? 0);
    }
    this.#count = continued.length;
    this.#starts = next;
    this.#nextStarts = starts;
  }
}
