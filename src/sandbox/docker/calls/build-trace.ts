/** The id of the engine's messages about a build by BuildKit. */
export const TRACE_ID = "moby.buildkit.trace";

/** Fields of `moby.buildkit.v1.StatusResponse` and of what is in it, by their numbers. */
const Status = { vertex: 1, log: 3 };
const Vertex = { digest: 1, name: 3, started: 5, completed: 6, error: 7 };
const Log = { vertex: 1, text: 4 };

/** A longer line is cut here: a command of a task may print for ever without ending a line. */
const MAX_LINE_CHARS = 64 * 1024;

/** A line whose end has not come yet. */
export class UnfinishedLine {
  #text = "";

  /** Returns the lines that this piece completes, and what has become too long to wait for its end. */
  push(piece: string): string[] {
    const lines = (this.#text + piece).split("\n");
    const last = lines.pop() ?? "";
    const isTooLong = last.length > MAX_LINE_CHARS;
    this.#text = isTooLong ? "" : last;
    return isTooLong ? [...lines, last] : lines;
  }

  get text(): string {
    return this.#text;
  }
}

/** Reads what BuildKit says of the steps of a build: their names when they begin, and what their commands print. */
export class BuildTrace {
  readonly #begun = new Set<string>();
  /** By the step whose commands print it, until that ends: steps run side by side. */
  readonly #unfinished = new Map<string, UnfinishedLine>();

  /** Error: SyntaxError for what is not a message of BuildKit. */
  linesOf(message: string): string[] {
    const lines: string[] = [];
    for (const [field, value] of fieldsOf(Buffer.from(message, "base64"))) {
      if (field === Status.vertex) lines.push(...this.#isAt(value));
      if (field === Status.log) lines.push(...this.#prints(value));
    }
    return lines;
  }

  /** Lines that did not end. */
  rest(): string[] {
    return [...this.#unfinished.values()].map(({ text }) => text);
  }

  #isAt(vertex: Buffer): string[] {
    const fields = new Map(fieldsOf(vertex));
    const digest = textOf(fields.get(Vertex.digest));
    const lines: string[] = [];
    if (fields.has(Vertex.started) && !this.#begun.has(digest)) {
      this.#begun.add(digest);
      const name = textOf(fields.get(Vertex.name));
      if (!name.startsWith("[internal]")) lines.push(name.replaceAll("\n", " "));
    }
    const printed = this.#unfinished.get(digest);
    if (printed !== undefined && fields.has(Vertex.completed)) {
      this.#unfinished.delete(digest);
      lines.push(printed.text);
    }
    // Steps run side by side, and its output may have been so long that nothing else says which one it was.
    if (fields.has(Vertex.error))
      lines.push(`this step failed: ${textOf(fields.get(Vertex.name))}`.replaceAll("\n", " "));
    return lines;
  }

  #prints(log: Buffer): string[] {
    const fields = new Map(fieldsOf(log));
    const vertex = textOf(fields.get(Log.vertex));
    const line = this.#unfinished.get(vertex) ?? new UnfinishedLine();
    this.#unfinished.set(vertex, line);
    return line.push(textOf(fields.get(Log.text)));
  }
}

function textOf(field: Buffer | undefined): string {
  return field?.toString() ?? "";
}

/** The fields of a protocol buffer that are texts or messages themselves. The others are left out. */
function* fieldsOf(message: Buffer): Generator<[number: number, value: Buffer]> {
  let at = 0;
  const skip = (bytes: number) => {
    at += bytes;
    if (at > message.length) throw new SyntaxError("a message of BuildKit is cut off");
  };
  const readNumber = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at] ?? 0;
      skip(1);
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = readNumber();
    const kind = tag % 8;
    if (kind === 0) readNumber();
    else if (kind === 1) skip(8);
    else if (kind === 5) skip(4);
    else if (kind === 2) {
      const length = readNumber();
      const start = at;
      skip(length);
      yield [Math.floor(tag / 8), message.subarray(start, at)];
    } else throw new SyntaxError("a message of BuildKit has a field of an unknown kind");
  }
}
