import { afterLineBreak, longSpellings } from "./spellings.js";

/** One character of a form of a secret, in all the ways in which it can be written. */
export interface Letter {
  /** The ways that have one byte. */
  readonly bytes: readonly number[];
  /** All others, sorted. One character stands for one byte. */
  readonly longer: readonly string[];
}

/** Number of characters of Base64 that depend on the bytes before, when these end in the middle of a group of three. */
const SHARED_CHARS = [0, 2, 3];

/** Writes secrets in letters: as they are, in hexadecimal, and in Base64 wherever they begin in a group of three bytes. */
export class Alphabet {
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
