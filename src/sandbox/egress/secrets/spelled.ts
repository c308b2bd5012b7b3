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
interface State {
  matches: readonly Match[];
  /** The step for each next byte, as far as any stream had it. */
  steps: (Step | undefined)[];
}

interface Step {
  to: State;
  /** The match of the old state that each match of the new state continues; NEW if it begins with this byte. */
  continued: readonly number[];
  /** Texts that end with this byte. */
  found: readonly { continued: number; text: number }[];
}

const NEW = -1;
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

/** One character of a form of a secret, in all the ways in which it can be written. */
interface Letter {
  /** The ways that have one byte. */
  readonly bytes: readonly number[];
  /** All others, sorted. One character stands for one byte. */
  readonly longer: readonly string[];
}

/** Number of characters of Base64 that depend on the bytes before, when these end in the middle of a group of three. */
const SHARED_CHARS = [0, 2, 3];

/** Writes secrets in letters: as they are, in hexadecimal, and in Base64 wherever they begin in a group of three bytes. */
class Alphabet {
  readonly #isBackwards: boolean;
  readonly #made = new Map<string, Letter>();

  /** `isBackwards`: for data whose bytes are in reverse order. */
  constructor({ isBackwards }: { isBackwards: boolean }) {
    this.#isBackwards = isBackwards;
  }

  formsOf(secret: string): Letter[][] {
    const forms = [
      [...Buffer.from(secret)].map((byte) => this.#letter({ kind: "text", byte, isFirst: false })),
      this.#coded(Buffer.from(secret).toString("hex"), "hex"),
      ...base64Of(secret).map((text) => this.#coded(text, "base64")),
    ];
    return this.#isBackwards ? forms.map((form) => form.toReversed()) : forms;
  }

  #coded(text: string, kind: "hex" | "base64"): Letter[] {
    return [...Buffer.from(text)].map((byte, at) => this.#letter({ kind, byte, isFirst: at === 0 }));
  }

  #letter(character: Character): Letter {
    const key = `${character.kind} ${character.byte} ${character.isFirst}`;
    const made = this.#made.get(key) ?? new LazyLetter(character, this.#isBackwards);
    this.#made.set(key, made);
    return made;
  }
}

/** Base64 of a text at each offset, without the characters that also depend on what is before and after it. */
export function base64Of(text: string): string[] {
  const bytes = Buffer.from(text);
  return SHARED_CHARS.map((shared, before) =>
    Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .slice(shared, Math.floor(((before + bytes.length) * 8) / 6)),
  );
}

interface Character {
  kind: "text" | "hex" | "base64";
  byte: number;
  /** Whether it is the first character of its form. */
  isFirst: boolean;
}

/** The list of longer ways is made only where a text comes close to a secret. */
class LazyLetter implements Letter {
  readonly bytes: readonly number[];
  readonly #character: Character;
  readonly #isBackwards: boolean;
  #longer: string[] | null = null;

  constructor(character: Character, isBackwards: boolean) {
    this.bytes = bytesOf(character);
    this.#character = character;
    this.#isBackwards = isBackwards;
  }

  get longer(): readonly string[] {
    this.#longer ??= longerOf(this.#character, this.bytes)
      .map((text) => (this.#isBackwards ? text.split("").reverse().join("") : text))
      .sort();
    return this.#longer;
  }
}

const PLUS = "+".charCodeAt(0);
const SLASH = "/".charCodeAt(0);

/** Hexadecimal is written in both cases, and Base64 with two alphabets. */
function bytesOf({ kind, byte }: Character): number[] {
  if (kind === "hex") return [...Buffer.from(String.fromCharCode(byte).toUpperCase()), byte];
  if (kind === "base64" && byte === PLUS) return [byte, "-".charCodeAt(0)];
  if (kind === "base64" && byte === SLASH) return [byte, "_".charCodeAt(0)];
  return [byte];
}

function longerOf({ kind, byte, isFirst }: Character, bytes: readonly number[]): string[] {
  if (kind === "text") return longSpellings(byte);
  const onNewLine = isFirst ? [] : bytes.flatMap((one) => afterLineBreak(String.fromCharCode(one)));
  return byte === PLUS || byte === SLASH ? [...longSpellings(byte), ...onNewLine] : onNewLine;
}

/** Names of characters in HTML, besides those of letters and digits, which have none. */
const HTML_NAMES: Readonly<Record<string, readonly string[]>> = {
  "!": ["excl"],
  '"': ["quot", "QUOT"],
  "#": ["num"],
  $: ["dollar"],
  "%": ["percnt"],
  "&": ["amp", "AMP"],
  "'": ["apos"],
  "(": ["lpar"],
  ")": ["rpar"],
  "*": ["ast", "midast"],
  "+": ["plus"],
  ",": ["comma"],
  ".": ["period"],
  "/": ["sol"],
  ":": ["colon"],
  ";": ["semi"],
  "<": ["lt", "LT"],
  "=": ["equals"],
  ">": ["gt", "GT"],
  "?": ["quest"],
  "@": ["commat"],
  "[": ["lsqb", "lbrack"],
  "\\": ["bsol"],
  "]": ["rsqb", "rbrack"],
  "^": ["Hat"],
  _: ["lowbar", "UnderBar"],
  "`": ["grave", "DiacriticalGrave"],
  "{": ["lcub", "lbrace"],
  "|": ["verbar", "vert", "VerticalLine"],
  "}": ["rcub", "rbrace"],
};

/** Ways in which shells and SQL write a quote inside of quotes. */
const QUOTED: Readonly<Record<string, readonly string[]>> = {
  "'": ["''", "'\\''", `'"'"'`],
  '"': ['""'],
};

/** Ways to write a line break inside of Base64 or hexadecimal, also in JSON. */
const LINE_BREAKS = ["\n", "\r\n", "\\n", "\\r\\n"];

/**
 * Ways in which programs write a byte of a text in longer form than as it is: in JSON and other literals, URLs, HTML, quoted-printable,
 * and in two of these at once, such as a URL in a URL or JSON in HTML. One character of each text stands for one byte.
 */
function longSpellings(byte: number): string[] {
  const once = new Set(spelledOnce(byte));
  const twice = [...once].flatMap((text) => OUTER_ENCODERS.map((encode) => encode(text)));
  return [...new Set([...once, ...twice])];
}

/** A character of Base64 or hexadecimal that stands on a new line. */
function afterLineBreak(character: string): string[] {
  return LINE_BREAKS.map((lineBreak) => lineBreak + character);
}

function spelledOnce(byte: number): string[] {
  const hex = byte.toString(16).padStart(2, "0");
  const digits = [hex, hex.toUpperCase()];
  const bytewise = [
    ...digits.flatMap((two) => [`%${two}`, `\\x${two}`, `=${two}`]),
    `\\${byte.toString(8).padStart(3, "0")}`,
  ];
  if (byte >= 0x80) return bytewise;
  const character = String.fromCharCode(byte);
  return [
    ...bytewise,
    ...digits.flatMap((two) => [`%u00${two}`, `\\u00${two}`, `\\u{${two}}`, `\\U000000${two}`]),
    ...["", "0", "00", "000"].flatMap((zeros) => [
      `&#${zeros}${byte};`,
      ...digits.flatMap((two) => [`&#x${zeros}${two};`, `&#X${zeros}${two};`]),
    ]),
    ...(HTML_NAMES[character] ?? []).map((name) => `&${name};`),
    ...(QUOTED[character] ?? []),
    ...(/[A-Za-z0-9]/.test(character) ? [] : [`\\${character}`]),
  ];
}

/** Encodings that a text that is encoded already gets in a document of another kind. */
const OUTER_ENCODERS: readonly ((text: string) => string)[] = [
  (text) => text.replace(/[\\"]/g, "\\$&"),
  (text) => text.replace(/[\\/]/g, "\\$&").replace(/["&'<>]/g, (one) => `\\u00${hexOf(one)}`),
  (text) => text.replace(/[^A-Za-z0-9]/g, (one) => `%${hexOf(one)}`),
  (text) => text.replace(/[^A-Za-z0-9]/g, (one) => `%${hexOf(one).toUpperCase()}`),
  (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("'", "&#39;"),
  (text) => text.replaceAll("&", "&#38;").replaceAll('"', "&#34;").replaceAll("'", "&#x27;"),
];

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(2, "0");
}
