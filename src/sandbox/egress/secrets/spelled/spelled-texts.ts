import { Alphabet, type Letter } from "./letters.js";

interface SpelledOptions {
  /** Set for data whose bytes are in reverse order. */
  isBackwards?: boolean;
  /** Number of leading characters that are enough to recognise a form that has `length` of them. Default: all. */
  enough?: (length: number) => number;
}

/** A part of a form that a stream ends with. */
interface Match {
  /** The place in the form that has been reached. */
  place: number;
  /** Number of bytes seen of the next character, and the range of its spellings that begin with them. */
  bytes: number;
  from: number;
  to: number;
}

/** All matches of a stream at one moment, the oldest first. */
export interface State {
  matches: readonly Match[];
  /** The step for each next byte, as far as any stream had it. */
  steps: (Step | undefined)[];
}

export interface Step {
  to: State;
  /** The match of the old state that each match of the new state continues; NEW if it begins with this byte. */
  continued: readonly number[];
  /** Texts that end with this byte. */
  found: readonly { continued: number; text: number }[];
}

export const NEW = -1;
/** Number of matches that are remembered, in states and steps. Above it they are forgotten and made anew as they are needed. */
const REMEMBERED_MATCHES_MAX = 50_000;

/**
 * Texts to look for, in every form in which they may be found and every way to write its characters. Streams share what one
 * of them has learned: each byte in each state has to be thought about only once.
 */
export class SpelledTexts {
  /** Length of the shortest text in characters; infinite if there are no texts. */
  readonly shortest: number;
  /** The places of each form follow each other: one before each character, and one at the end, which has null. */
  readonly #letters: readonly (Letter | null)[];
  /** Index of the text that is found when a place is reached; -1 for none. */
  readonly #found: readonly number[];
  /** The places at which forms begin. */
  readonly #beginnings: readonly number[];
  #states = new Map<string, State>();
  #remembered = 0;
  /** The state without any match. */
  readonly nothing: State = { matches: [], steps: [] };
  /** The step of most bytes in most states: whoever sends data can have one in each, so that they are all the same. */
  readonly #toNothing: Step = { to: this.nothing, continued: [], found: [] };

  constructor(
    texts: readonly string[],
    { isBackwards = false, enough = (length) => length }: SpelledOptions = {},
  ) {
    const alphabet = new Alphabet({ isBackwards });
    const letters: (Letter | null)[] = [];
    const found: number[] = [];
    const beginnings: number[] = [];
    let shortest = Number.POSITIVE_INFINITY;
    for (const [at, text] of texts.entries())
      for (const form of alphabet.formsOf(text)) {
        if (form.length === 0) continue;
        beginnings.push(letters.length);
        letters.push(...form, null);
        const least = enough(form.length);
        for (let place = 0; place <= form.length; place++) found.push(place >= least ? at : -1);
        shortest = Math.min(shortest, form.length);
      }
    this.#letters = letters;
    this.#found = found;
    this.#beginnings = beginnings;
    this.shortest = shortest;
  }

  step(state: State, byte: number): Step {
    const known = state.steps[byte];
    if (known !== undefined) return known;
    const step = this.#think(state, byte);
    state.steps[byte] = step;
    return step;
  }

  #think({ matches }: State, byte: number): Step {
    const next = new Map<string, { match: Match; continued: number }>();
    const found = new Map<number, number>();
    const reach = (place: number, continued: number) => {
      const text = this.#found[place] ?? -1;
      if (text >= 0 && !found.has(text)) found.set(text, continued);
      if (this.#letters[place]) add({ place, bytes: 0, from: 0, to: 0 }, continued);
    };
    // If two matches go on alike, the older one covers all of the younger one.
    const add = (match: Match, continued: number) => {
      const key = keyOf(match);
      if (!next.has(key)) next.set(key, { match, continued });
    };
    const take = (match: Match, continued: number) => {
      const letter = this.#letters[match.place];
      if (!letter) return;
      if (match.bytes === 0 && letter.bytes.includes(byte)) reach(match.place + 1, continued);
      const { longer } = letter;
      const narrowed = narrow(longer, match, byte);
      if (narrowed.from === narrowed.to) return;
      // A spelling comes before all others that begin with it.
      if (longer[narrowed.from]?.length === narrowed.bytes) {
        reach(match.place + 1, continued);
        narrowed.from += 1;
      }
      if (narrowed.from < narrowed.to) add(narrowed, continued);
    };
    for (const [at, match] of matches.entries()) take(match, at);
    for (const place of this.#beginnings) take({ place, bytes: 0, from: 0, to: 0 }, NEW);
    if (next.size + found.size === 0) return this.#toNothing;
    const all = [...next.values()];
    this.#remembered += all.length + found.size;
    return {
      to: this.#stateOf(
        [...next.keys()].join(),
        all.map(({ match }) => match),
      ),
      continued: all.map(({ continued }) => continued),
      found: [...found].map(([text, continued]) => ({ text, continued })),
    };
  }

  #stateOf(key: string, matches: readonly Match[]): State {
    if (matches.length === 0) return this.nothing;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    this.#remembered += matches.length;
    if (this.#remembered > REMEMBERED_MATCHES_MAX) {
      this.#states = new Map();
      this.#remembered = matches.length;
      this.nothing.steps = [];
    }
    const state: State = { matches, steps: [] };
    this.#states.set(key, state);
    return state;
  }
}

function keyOf({ place, bytes, from }: Match): string {
  return `${place}.${bytes}.${from}`;
}

/** Goes on with a character by one byte. The spellings are sorted, and those of the match begin alike. */
function narrow(spellings: readonly string[], { place, bytes, from, to }: Match, byte: number): Match {
  const end = bytes === 0 ? spellings.length : to;
  const firstFrom = (wanted: number) => {
    let [low, high] = [from, end];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((spellings[middle]?.charCodeAt(bytes) ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return { place, bytes: bytes + 1, from: firstFrom(byte), to: firstFrom(byte + 1) };
}
