import { mapTexts } from "../../../lib/json/map-texts.js";
import { SpelledSearch, SpelledTexts } from "./spelled.js";
import { coverIn, StreamMask } from "./stream-mask.js";

/** Shortest part of a cut secret that is hidden. Shorter parts may be what all keys of a service begin with. */
const PART_MIN_CHARS = 12;
/** Keys that expire are read anew every hour or so, and each secret makes every output slower. */
const ADDED_MAX = 32;

/** Hides secrets in what leaves a sandbox towards a person, a model or a file. What it replaces keeps its length. */
export class SecretMask {
  readonly #first: readonly string[];
  #added: string[][] = [];
  #hidden: Hidden;

  constructor(secrets: readonly { value: string }[]) {
    this.#first = secrets.map(({ value }) => value);
    this.#hidden = hidden(this.#first);
  }

  /** What is hidden at the moment. */
  get values(): string[] {
    return [...this.#first, ...this.#added.flat()];
  }

  /** Hides these as well from now on, also in the output of commands that run already. Of a long series, the newest. */
  add(values: readonly string[]): void {
    this.#added = [...this.#added, [...values]].slice(-ADDED_MAX);
    this.#hidden = hidden([...this.#first, ...this.#added.flat()]);
  }

  /** Masks the output of one command. */
  output(deliver: Deliver): MaskedOutput {
    return new MaskedOutput(() => this.#hidden.whole, deliver);
  }

  /**
   * Hides secrets, and what is left of one where a text was cut, if it is half of it or more: tools cut long lines and
   * long outputs.
   */
  text(text: string): string {
    const shown = this.bytes(Buffer.from(text));
    // A text that is not proper Unicode stays as it is, too.
    return shown.equals(Buffer.from(text)) ? text : shown.toString();
  }

  /** Hides secrets like `text`. Returns a copy. */
  bytes(data: Uint8Array): Buffer {
    const shown = Buffer.from(data);
    new SpelledSearch(this.#hidden.beginnings, coverIn(shown)).scan(data);
    new SpelledSearch(this.#hidden.ends, coverIn(shown.reverse())).scan(Buffer.from(data).reverse());
    return shown.reverse();
  }

  /** All texts in a value of plain objects and lists. */
  within<Value>(value: Value): Value {
    return mapTexts(value, (text) => this.text(text));
  }
}

interface Hidden {
  whole: SpelledTexts;
  /** Halves of secrets, and what follows of them. */
  beginnings: SpelledTexts;
  /** Texts for data whose bytes are in reverse order. */
  ends: SpelledTexts;
}

function hidden(secrets: readonly string[]): Hidden {
  const enough = (length: number) => Math.min(length, Math.max(PART_MIN_CHARS, Math.ceil(length / 2)));
  return {
    whole: new SpelledTexts(secrets),
    beginnings: new SpelledTexts(secrets, { enough }),
    ends: new SpelledTexts(secrets, { enough, isBackwards: true }),
  };
}

/** How long a few bytes wait that may be the beginning of a secret. A person who types waits for their echo. */
const EARLY_AFTER_MS = 100;

/** Receives a piece of a command's output. A returned promise pauses the output. */
type Deliver = (data: Buffer, isStderr: boolean) => unknown;

/** The output of one command, in which secrets are masked wherever its pieces are cut. */
class MaskedOutput {
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
