import type { SpelledTexts } from "./spelled/spelled-texts.js";
import { StreamMask } from "./stream-mask.js";

/** How long a few bytes wait that may be the beginning of a secret. A person who types waits for their echo. */
const EARLY_AFTER_MS = 100;

/** Receives a piece of a command's output. A returned promise pauses the output. */
export type Deliver = (data: Buffer, isStderr: boolean) => unknown;

/** The output of one command, in which secrets are masked wherever its pieces are cut. */
export class MaskedOutput {
  readonly #streams: readonly [StreamMask, StreamMask];
  readonly #deliver: Deliver;
  #timer: NodeJS.Timeout | undefined;
  #failure: { error: unknown } | undefined;

  /** `current` says what is hidden at the moment. */
  constructor(current: () => SpelledTexts, deliver: Deliver) {
    this.#streams = [new StreamMask(current), new StreamMask(current)];
    this.#deliver = deliver;
  }

  /** Throws what the receiver has thrown. */
  take(data: Buffer, isStderr: boolean): unknown {
    this.#throwFailure();
    // Output that came first on the other stream is shown first, if it need not wait.
    this.#give(this.#streams[isStderr ? 0 : 1].early(), !isStderr);
    const shown = this.#streams[isStderr ? 1 : 0].push(data);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#streams.some(({ isWaiting }) => isWaiting)) {
      this.#timer = setTimeout(() => this.#giveEarly(), EARLY_AFTER_MS);
      this.#timer.unref();
    }
    return shown.length === 0 ? undefined : this.#deliver(shown, isStderr);
  }

  /** Call this when the command has ended. Throws what the receiver has thrown. */
  end(): void {
    clearTimeout(this.#timer);
    this.#throwFailure();
    for (const [at, stream] of this.#streams.entries()) this.#give(stream.end(), at === 1);
    this.#throwFailure();
  }

  #giveEarly(): void {
    for (const [at, stream] of this.#streams.entries()) this.#give(stream.early(), at === 1);
  }

  /** No piece of the stream waits for these bytes, so an error is thrown with the next one. */
  #give(data: Buffer, isStderr: boolean): void {
    if (data.length === 0) return;
    const fail = (error: unknown) => {
      this.#failure ??= { error };
    };
    try {
      Promise.resolve(this.#deliver(data, isStderr)).catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
