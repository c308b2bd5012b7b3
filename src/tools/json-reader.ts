/** A value in a JSON text, with what serde's error messages say about it. */
export interface JsonNode {
  /** What serde calls the value, e.g. `` integer `5` ``. */
  kind: string;
  /** The offset of an error in the value: the end of a scalar, the start of an object or a list. */
  at: number;
  end: number;
  /** The end of its name, for a member of an object. */
  nameEnd: number;
  members: ReadonlyMap<string | number, JsonNode>;
}

/** The message is serde's, without the position. */
export class JsonSyntaxError extends Error {
  /** The number of characters that serde has read when it reports the error. */
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

const MAX_DEPTH = 128;
const noMembers: ReadonlyMap<string | number, JsonNode> = new Map();

/** The line, counted from 1, and the number of bytes in it up to an offset. */
export function positionOf(text: string, at: number): string {
  const before = text.slice(0, at);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return `line ${before.split("\n").length} column ${Buffer.byteLength(line)}`;
}

/** Reads JSON as strictly as serde, in linear time. Throws `JsonSyntaxError`, e.g. for a duplicate key. */
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
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#errorAfterNext("trailing characters");
    return node;
  }

  #value(depth: number): JsonNode {
    this.#skipSpace();
    const character = this.#text[this.#at];
    if (character === undefined) throw this.#error("EOF while parsing a value");
    if (depth > MAX_DEPTH) throw this.#errorAfterNext("recursion limit exceeded");
    if (character === "{") return this.#object(depth);
    if (character === "[") return this.#list(depth);
    if (character === '"') {
      return this.#plain(`string ${JSON.stringify(this.#string())}`);
    }
    if (character === "t") return this.#word("true", "boolean `true`");
    if (character === "f") return this.#word("false", "boolean `false`");
    if (character === "n") return this.#word("null", "null");
    if (/[-\d]/.test(character)) return this.#number();
    throw this.#errorAfterNext("expected value");
  }

  #plain(kind: string): JsonNode {
    return { kind, at: this.#at, end: this.#at, nameEnd: 0, members: noMembers };
  }

  #word(word: string, kind: string): JsonNode {
    for (const expected of word) {
      const found = this.#text[this.#at];
      if (found === undefined) throw this.#error("EOF while parsing a value");
      this.#at++;
      if (found !== expected) throw this.#error("expected ident");
    }
    return this.#plain(kind);
  }

  #number(): JsonNode {
    const start = this.#at;
    if (this.#text[this.#at] === "-") this.#at++;
    const first = this.#digits();
    if (first.length > 1 && first.startsWith("0")) {
      this.#at -= first.length - 1;
      throw this.#errorAfterNext("invalid number");
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
      if (this.#at >= this.#text.length) throw this.#error("EOF while parsing a value");
      throw this.#errorAfterNext("invalid number");
    }
    this.#at += found.length;
    return found;
  }

  #string(): string {
    const start = this.#at++;
    for (;;) {
      const character = this.#text[this.#at];
      if (character === undefined) throw this.#error("EOF while parsing a string");
      if (character < " ")
        throw this.#error("control character (\\u0000-\\u001F) found while parsing a string");
      this.#at++;
      if (character === '"') break;
      if (character === "\\") this.#escape();
      else this.#skip(/[^"\\\p{Cc}]*/uy);
    }
    return JSON.parse(this.#text.slice(start, this.#at)) as string;
  }

  #escape(): void {
    const character = this.#text[this.#at++];
    if (character === undefined) throw this.#error("EOF while parsing a string");
    const isCode = character === "u";
    if (!isCode && !'"\\/bfnrt'.includes(character)) throw this.#error("invalid escape");
    if (!isCode) return;
    if (!/^[\da-fA-F]{4}$/.test(this.#text.slice(this.#at, this.#at + 4)))
      throw this.#error("invalid escape");
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
      if (this.#text[this.#at] !== '"') throw this.#errorAfterNext("key must be a string");
      const name = this.#string();
      const nameEnd = this.#at;
      if (members.has(name)) throw this.#error(`duplicate field \`${name}\``);
      this.#skipSpace();
      if (this.#at >= this.#text.length) throw this.#error("EOF while parsing an object");
      if (this.#text[this.#at] !== ":") throw this.#errorAfterNext("expected `:`");
      this.#at++;
      members.set(name, { ...this.#value(depth + 1), nameEnd });
    }
    return { kind: "map", at, end: this.#at, nameEnd: 0, members };
  }

  /** Also consumes the comma before the next item, or the closing bracket. */
  #hasNext(end: string, { isFirst, what }: { isFirst: boolean; what: string }): boolean {
    this.#skipSpace();
    const character = this.#text[this.#at];
    if (character === undefined) throw this.#error(`EOF while parsing ${what}`);
    if (character === end) {
      this.#at++;
      return false;
    }
    if (isFirst) return true;
    if (character !== ",") throw this.#errorAfterNext(`expected \`,\` or \`${end}\``);
    this.#at++;
    this.#skipSpace();
    if (this.#text[this.#at] === end) throw this.#errorAfterNext("trailing comma");
    if (this.#at >= this.#text.length)
      throw this.#error(`EOF while parsing ${end === "}" ? "an object" : "a value"}`);
    return true;
  }

  #skipSpace(): void {
    this.#skip(/[ \t\r\n]*/y);
  }

  #skip(characters: RegExp): void {
    characters.lastIndex = this.#at;
    this.#at += characters.exec(this.#text)?.[0].length ?? 0;
  }

  #error(message: string): JsonSyntaxError {
    return new JsonSyntaxError(message, this.#at);
  }

  /** For errors that serde reports after it has read the wrong character. */
  #errorAfterNext(message: string): JsonSyntaxError {
    return new JsonSyntaxError(message, this.#at + 1);
  }
}
