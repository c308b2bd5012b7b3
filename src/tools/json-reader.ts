/** A part of a JSON text, as serde speaks of it. */
export interface JsonNode {
  /** How the value is called in a complaint, e.g. `` integer `5` ``. */
  kind: string;
  /** The characters read when the complaint is made: all of a plain value, none of an object or a list. */
  at: number;
  /** The characters read with the whole of it. */
  end: number;
  /** Of a member of an object, the characters read with its name. */
  nameEnd: number;
  members: ReadonlyMap<string | number, JsonNode>;
}

/** A text that is no JSON, in serde's words without the place. */
export class JsonFault extends Error {
  /** The characters read until then. */
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

const MAX_DEPTH = 128;
const noMembers: ReadonlyMap<string | number, JsonNode> = new Map();

/** Where a complaint is, after so many characters: lines from 1, and bytes of the line. */
export function placeOf(text: string, at: number): string {
  const before = text.slice(0, at);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return `line ${before.split("\n").length} column ${Buffer.byteLength(line)}`;
}

/** Reads JSON as strictly as serde does: every key once, and nothing behind it. Throws `JsonFault`. Takes linear time. */
export function readJson(text: string): JsonNode {
  return new JsonReader(text).readAll();
}

class JsonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  readAll(): JsonNode {
    const node = this.#value(0);
    this.#skipBlanks();
    if (this.#at < this.#text.length) throw this.#faultHere("trailing characters");
    return node;
  }

  #value(depth: number): JsonNode {
    this.#skipBlanks();
    const character = this.#text[this.#at];
    if (character === undefined) throw this.#fault("EOF while parsing a value");
    if (depth > MAX_DEPTH) throw this.#faultHere("recursion limit exceeded");
    if (character === "{") return this.#object(depth);
    if (character === "[") return this.#list(depth);
    if (character === '"') {
      return this.#plain(`string ${JSON.stringify(this.#string())}`);
    }
    if (character === "t") return this.#word("true", "boolean `true`");
    if (character === "f") return this.#word("false", "boolean `false`");
    if (character === "n") return this.#word("null", "null");
    if (/[-\d]/.test(character)) return this.#number();
    throw this.#faultHere("expected value");
  }

  #plain(kind: string): JsonNode {
    return { kind, at: this.#at, end: this.#at, nameEnd: 0, members: noMembers };
  }

  #word(word: string, kind: string): JsonNode {
    for (const expected of word) {
      const found = this.#text[this.#at];
      if (found === undefined) throw this.#fault("EOF while parsing a value");
      this.#at++;
      if (found !== expected) throw this.#fault("expected ident");
    }
    return this.#plain(kind);
  }

  #number(): JsonNode {
    const start = this.#at;
    if (this.#text[this.#at] === "-") this.#at++;
    const first = this.#digits();
    if (first.length > 1 && first.startsWith("0")) {
      this.#at -= first.length - 1;
      throw this.#faultHere("invalid number");
    }
    if (this.#text[this.#at] === ".") {
      this.#at++;
      this.#digits();
    }
    if (/[eE]/.test(this.#text[this.#at] ?? "")) {
      this.#at++;
      if (/[-+]/.test(this.#text[this.#at] ?? "")) this.#at++;
      this.#digits();
    }
    const written = this.#text.slice(start, this.#at);
    const isInteger =
      /^-?\d+$/.test(written) && BigInt(written) < 2n ** 64n && BigInt(written) >= -(2n ** 63n);
    return this.#plain(isInteger ? `integer \`${written}\`` : `floating point \`${Number(written)}\``);
  }

  #digits(): string {
    const digits = /\d*/y;
    digits.lastIndex = this.#at;
    const found = digits.exec(this.#text)?.[0] ?? "";
    if (found === "") {
      if (this.#at >= this.#text.length) throw this.#fault("EOF while parsing a value");
      throw this.#faultHere("invalid number");
    }
    this.#at += found.length;
    return found;
  }

  #string(): string {
    const start = this.#at++;
    for (;;) {
      const character = this.#text[this.#at];
      if (character === undefined) throw this.#fault("EOF while parsing a string");
      if (character < " ")
        throw this.#fault("control character (\\u0000-\\u001F) found while parsing a string");
      this.#at++;
      if (character === '"') break;
      if (character === "\\") this.#escape();
      else this.#skip(/[^"\\\p{Cc}]*/uy);
    }
    return JSON.parse(this.#text.slice(start, this.#at)) as string;
  }

  #escape(): void {
    const character = this.#text[this.#at++];
    if (character === undefined) throw this.#fault("EOF while parsing a string");
    const isCode = character === "u";
    if (!isCode && !'"\\/bfnrt'.includes(character)) throw this.#fault("invalid escape");
    if (!isCode) return;
    if (!/^[\da-fA-F]{4}$/.test(this.#text.slice(this.#at, this.#at + 4)))
      throw this.#fault("invalid escape");
    this.#at += 4;
  }

  #list(depth: number): JsonNode {
    const at = this.#at++;
    const members = new Map<number, JsonNode>();
    while (this.#hasNext("]", { isFirst: members.size === 0, what: "a list" }))
      members.set(members.size, this.#value(depth + 1));
    return { kind: "sequence", at, end: this.#at, nameEnd: 0, members };
  }

  #object(depth: number): JsonNode {
    const at = this.#at++;
    const members = new Map<string, JsonNode>();
    while (this.#hasNext("}", { isFirst: members.size === 0, what: "an object" })) {
      if (this.#text[this.#at] !== '"') throw this.#faultHere("key must be a string");
      const name = this.#string();
      const nameEnd = this.#at;
      if (members.has(name)) throw this.#fault(`duplicate field \`${name}\``);
      this.#skipBlanks();
      if (this.#at >= this.#text.length) throw this.#fault("EOF while parsing an object");
      if (this.#text[this.#at] !== ":") throw this.#faultHere("expected `:`");
      this.#at++;
      members.set(name, { ...this.#value(depth + 1), nameEnd });
    }
    return { kind: "map", at, end: this.#at, nameEnd: 0, members };
  }

  /** Goes over the comma, or over the end. */
  #hasNext(end: string, { isFirst, what }: { isFirst: boolean; what: string }): boolean {
    this.#skipBlanks();
    const character = this.#text[this.#at];
    if (character === undefined) throw this.#fault(`EOF while parsing ${what}`);
    if (character === end) {
      this.#at++;
      return false;
    }
    if (isFirst) return true;
    if (character !== ",") throw this.#faultHere(`expected \`,\` or \`${end}\``);
    this.#at++;
    this.#skipBlanks();
    if (this.#text[this.#at] === end) throw this.#faultHere("trailing comma");
    if (this.#at >= this.#text.length)
      throw this.#fault(`EOF while parsing ${end === "}" ? "an object" : "a value"}`);
    return true;
  }

  #skipBlanks(): void {
    this.#skip(/[ \t\r\n]*/y);
  }

  #skip(characters: RegExp): void {
    characters.lastIndex = this.#at;
    this.#at += characters.exec(this.#text)?.[0].length ?? 0;
  }

  #fault(message: string): JsonFault {
    return new JsonFault(message, this.#at);
  }

  /** The character that is looked at counts as read. */
  #faultHere(message: string): JsonFault {
    return new JsonFault(message, this.#at + 1);
  }
}
