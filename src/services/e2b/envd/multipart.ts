import { Refusal } from "../../serve/http/refusal.js";

/** One field of a form. Its content has to be read before the next part is asked for. */
export interface FormPart {
  name: string;
  fileName: string | undefined;
  content: AsyncIterable<Buffer>;
}

const MAX_HEAD_BYTES = 16 * 1024;

/** The boundary of a form of this type. Error: a refusal with 400. */
export function boundaryOf(contentType: string): string {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw invalid("the form has no boundary");
  return boundary;
}

/** Reads a form of any size as it comes. Errors: a refusal with 400 for what is none; those of the body. */
export async function* readParts(body: AsyncIterable<Buffer>, boundary: string): AsyncGenerator<FormPart> {
  const source = new FormSource(body);
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  // Before the first delimiter there may be something that nobody is to read.
  source.prepend(Buffer.from("\r\n"));
  for await (const _ of source.until(delimiter));
  for (;;) {
    const next = await source.take(2);
    if (next === "--") return;
    if (next !== "\r\n") throw invalid("something else follows a boundary of the form");
    // A part without headers begins with an empty line at once.
    source.prepend(Buffer.from("\r\n"));
    const head = await source.text(Buffer.from("\r\n\r\n"), MAX_HEAD_BYTES);
    const content = source.until(delimiter);
    yield { ...namesIn(head), content };
    for await (const _ of content);
  }
}

function namesIn(head: string): { name: string; fileName: string | undefined } {
  const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? "";
  const value = (name: string) => {
    const quoted = new RegExp(`;\\s*${name}="((?:[^"\\\\]|\\\\.)*)"`, "i").exec(disposition)?.[1];
    return quoted?.replaceAll("%22", '"').replaceAll("%0D", "\r").replaceAll("%0A", "\n");
  };
  return { name: value("name") ?? "", fileName: value("filename") };
}

/** A body of which a part is taken at a time. */
class FormSource {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(body: AsyncIterable<Buffer>) {
    this.#pieces = body[Symbol.asyncIterator]();
  }

  prepend(bytes: Buffer): void {
    this.#rest = Buffer.concat([bytes, this.#rest]);
  }

  /** What comes before the mark, which is taken too. */
  async *until(mark: Buffer): AsyncGenerator<Buffer> {
    for (;;) {
      const at = this.#rest.indexOf(mark);
      // A part of the mark may be at the end.
      const end = at >= 0 ? at : Math.max(0, this.#rest.length - mark.length + 1);
      const before = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(at >= 0 ? at + mark.length : end);
      if (before.length > 0) yield before;
      if (at >= 0) return;
      await this.#more();
    }
  }

  async text(mark: Buffer, maxBytes: number): Promise<string> {
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of this.until(mark)) {
      bytes += piece.length;
      if (bytes > maxBytes) throw invalid("the head of a part of the form is too long");
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString();
  }

  async take(length: number): Promise<string> {
    while (this.#rest.length < length) await this.#more();
    const taken = this.#rest.toString("latin1", 0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#pieces.next();
    if (done === true) throw invalid("the form has no end");
    this.#rest = this.#rest.length === 0 ? value : Buffer.concat([this.#rest, value]);
  }
}

function invalid(message: string): Refusal {
  return new Refusal(message, { status: 400, code: "usage.invalid", hint: "send it as multipart/form-data" });
}
