/** Keeps the head and the tail of a byte stream within a budget and counts what it drops. Copies what it keeps. */
export class OutputCollector {
  readonly #headBudget: number;
  readonly #tailBudget: number;
  #head = new GrowingBytes();
  #tail = new GrowingBytes();
  /** Once the tail is full it is a ring, and this is where its oldest byte lies. */
  #tailStart = 0;
  #total = 0;

  /** `maxBytes` is split in half between head and tail. */
  constructor(maxBytes: number) {
    this.#headBudget = Math.ceil(maxBytes / 2);
    this.#tailBudget = Math.floor(maxBytes / 2);
  }

  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const room = Math.min(this.#headBudget - this.#head.length, chunk.length);
    if (room > 0) this.#head.append(chunk.subarray(0, room));
    if (room < chunk.length) this.#pushTail(chunk.subarray(room));
  }

  /** Another collector in the same state. */
  clone(): OutputCollector {
    const copy = new OutputCollector(this.#headBudget + this.#tailBudget);
    copy.#head = this.#head.clone();
    copy.#tail = this.#tail.clone();
    copy.#tailStart = this.#tailStart;
    copy.#total = this.#total;
    return copy;
  }

  get omittedBytes(): number {
    return this.#total - this.#head.length - this.#tail.length;
  }

  get totalBytes(): number {
    return this.#total;
  }

  bytes(): Buffer {
    return Buffer.concat([this.#head.bytes(), ...this.#tailPieces()]);
  }

  /** Decoded as UTF-8; where something was left out the text says how much, and no character is cut in two. */
  text(): string {
    if (this.#tail.length === 0) return this.#head.bytes().toString("utf8");
    if (this.omittedBytes === 0) return this.bytes().toString("utf8");
    const head = withoutBrokenEnd(this.#head.bytes());
    const tail = withoutBrokenStart(Buffer.concat(this.#tailPieces()));
    const omitted = this.#total - head.length - tail.length;
    return `${head.toString("utf8")}\n[… ${omitted} bytes left out …]\n${tail.toString("utf8")}`;
  }

  #tailPieces(): Buffer[] {
    const bytes = this.#tail.bytes();
    return [bytes.subarray(this.#tailStart), bytes.subarray(0, this.#tailStart)];
  }

  #pushTail(chunk: Buffer): void {
    const budget = this.#tailBudget;
    if (budget === 0) return;
    const newest = chunk.length > budget ? chunk.subarray(chunk.length - budget) : chunk;
    const free = Math.min(budget - this.#tail.length, newest.length);
    if (free > 0) this.#tail.append(newest.subarray(0, free));
    for (let at = free; at < newest.length; ) {
      const step = Math.min(budget - this.#tailStart, newest.length - at);
      this.#tail.overwrite(this.#tailStart, newest.subarray(at, at + step));
      this.#tailStart = (this.#tailStart + step) % budget;
      at += step;
    }
  }
}

class GrowingBytes {
  #data: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#data.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#data.length * 2, 4096));
      this.#data.copy(grown, 0, 0, this.#length);
      this.#data = grown;
    }
    chunk.copy(this.#data, this.#length);
    this.#length = needed;
  }

  overwrite(at: number, chunk: Buffer): void {
    chunk.copy(this.#data, at);
  }

  bytes(): Buffer {
    return this.#data.subarray(0, this.#length);
  }

  clone(): GrowingBytes {
    const copy = new GrowingBytes();
    if (this.#length > 0) copy.append(this.bytes());
    return copy;
  }
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

function withoutBrokenEnd(bytes: Buffer): Buffer {
  let start = bytes.length - 1;
  while (start > bytes.length - 4 && isContinuation(bytes[start])) start--;
  const lead = bytes[start] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start >= 0 && start + length > bytes.length ? bytes.subarray(0, start) : bytes;
}

function withoutBrokenStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && isContinuation(bytes[start])) start++;
  return bytes.subarray(start);
}
