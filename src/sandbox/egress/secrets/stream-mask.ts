import { type OnFound, SpelledSearch, type SpelledTexts } from "./spelled.js";

const STAR = "*".charCodeAt(0);
/** Length of a secret's beginning that may be shown while it is not known what follows. */
const EARLY_MAX_BYTES = 4;

/** Masks a stream, piece by piece. Only bytes that may be the beginning of a secret wait for what follows. */
export class StreamMask {
  readonly #current: () => SpelledTexts;
  #texts: SpelledTexts;
  #search: SpelledSearch;
  /** The end of the stream so far, if a form begins with it. */
  #waiting: Buffer = Buffer.alloc(0);
  /** The same bytes as they are shown. A secret that ends in them may be masked already. */
  #shown: Buffer = Buffer.alloc(0);
  /** Position of the waiting bytes in the data of the search. */
  #from = 0;
  /** Number of waiting bytes that were given early. */
  #given = 0;

  /** `current` says what is hidden at the moment. */
  constructor(current: () => SpelledTexts) {
    this.#current = current;
    this.#texts = current();
    this.#search = this.#newSearch();
  }

  /** Returns what can be shown now; it may be empty. */
  push(chunk: Uint8Array): Buffer {
    if (this.#current() !== this.#texts) {
      this.#texts = this.#current();
      this.#search = this.#newSearch();
      this.#search.scan(this.#waiting);
      this.#from = 0;
    }
    const shown = Buffer.concat([this.#shown, chunk]);
    this.#shown = shown;
    this.#search.scan(chunk);
    const end = this.#search.pendingFrom - this.#from;
    const from = this.#given;
    this.#waiting = Buffer.concat([this.#waiting, chunk]).subarray(end);
    this.#shown = shown.subarray(end);
    this.#from += end;
    this.#given = Math.max(0, from - end);
    return shown.subarray(from, Math.max(from, end));
  }

  /**
   * Returns the waiting bytes, if they are too few to give a secret away: an echo or a prompt that happens to begin
   * like one. What follows is masked all the same.
   */
  early(): Buffer {
    const most = Math.min(EARLY_MAX_BYTES, Math.floor(this.#texts.shortest / 4));
    return this.#shown.length > most ? Buffer.alloc(0) : this.#give();
  }

  /** Returns what waits, at the end of the stream. */
  end(): Buffer {
    return this.#give();
  }

  /** Whether anything waits that was not given. */
  get isWaiting(): boolean {
    return this.#given < this.#shown.length;
  }

  #newSearch(): SpelledSearch {
    return new SpelledSearch(this.#texts, (start, end) => {
      this.#shown.fill(STAR, start - this.#from, end - this.#from);
    });
  }

  #give(): Buffer {
    const rest = Buffer.from(this.#shown.subarray(this.#given));
    this.#given = this.#shown.length;
    return rest;
  }
}

/** Puts asterisks into the data wherever a search finds something. Forms may overlap. */
export function coverIn(shown: Buffer): OnFound {
  let [first, covered] = [0, 0];
  return (start, end) => {
    // If a form has grown, only the rest is not covered yet.
    const isMore = start >= first && start <= covered;
    shown.fill(STAR, isMore ? covered : start, end);
    if (!isMore) first = start;
    covered = end;
  };
}
