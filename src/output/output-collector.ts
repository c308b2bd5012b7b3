import { StringDecoder } from "node:string_decoder";

const FIRST_CAPACITY = 4096;
/**
 * Steep, since an outgrown buffer stays in memory until the next collection; what is allocated and not yet written to
 * costs nothing.
 */
const GROWTH = 16;

/** Keeps the head and the tail of a byte stream within a budget and counts what it drops. Copies what it keeps. */
export class OutputCollector {
  readonly #maxBytes: number;
  readonly #headBytes: number;
  /** Head and tail in one. Once it is full the tail is a ring that begins at `#oldest`. */
  #kept: Buffer = Buffer.alloc(0);
  #oldest: number;
  #total = 0;

  /** `maxBytes` is split in half between head and tail. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#headBytes = Math.ceil(maxBytes / 2);
    this.#oldest = this.#headBytes;
  }

  push(chunk: Buffer): void {
    const free = Math.min(this.#maxBytes - this.#keptBytes, chunk.length);
    if (free > 0) this.#append(chunk.subarray(0, free));
    if (free < chunk.length) this.#overwriteOldest(chunk.subarray(free));
    this.#total += chunk.length;
  }

  /** Another collector in the same state. */
  clone(): OutputCollector {
    const copy = new OutputCollector(this.#maxBytes);
    copy.#append(this.#kept.subarray(0, this.#keptBytes));
    copy.#oldest = this.#oldest;
    copy.#total = this.#total;
    return copy;
  }

  get totalBytes(): number {
    return this.#total;
  }

  get omittedBytes(): number {
    return this.#total - this.#keptBytes;
  }

  bytes(): Buffer {
    return Buffer.concat([this.#head(), ...this.#tail()]);
  }

  /** Decoded as UTF-8; where something was left out the text says how much, and no character is cut in two. */
  text(): string {
    if (this.omittedBytes === 0) return this.#kept.toString("utf8", 0, this.#keptBytes);
    const head = withoutBrokenEnd(this.#head());
    const tail = withoutBrokenStart(this.#tail());
    const omitted = this.#total - head.length - tail.reduce((sum, { length }) => sum + length, 0);
    return `${head.toString("utf8")}\n[… ${omitted} bytes left out …]\n${decode(tail)}`;
  }

  get #keptBytes(): number {
    return Math.min(this.#total, this.#maxBytes);
  }

  #head(): Buffer {
    return this.#kept.subarray(0, Math.min(this.#headBytes, this.#keptBytes));
  }

  /** Its older and its newer part. */
  #tail(): Buffer[] {
    return [
      this.#kept.subarray(this.#oldest, this.#keptBytes),
      this.#kept.subarray(this.#headBytes, this.#oldest),
    ];
  }

  #append(chunk: Buffer): void {
    const end = this.#keptBytes + chunk.length;
    if (end > this.#kept.length) {
      const capacity = Math.max(end, this.#kept.length * GROWTH, FIRST_CAPACITY);
      const grown = Buffer.allocUnsafeSlow(Math.min(capacity, this.#maxBytes));
      this.#kept.copy(grown, 0, 0, this.#keptBytes);
      this.#kept = grown;
    }
    chunk.copy(this.#kept, this.#keptBytes);
  }

  #overwriteOldest(chunk: Buffer): void {
    const tailBytes = this.#maxBytes - this.#headBytes;
    if (tailBytes === 0) return;
    for (let at = Math.max(0, chunk.length - tailBytes); at < chunk.length; ) {
      const copied = chunk.copy(this.#kept, this.#oldest, at);
      at += copied;
      this.#oldest += copied;
      if (this.#oldest === this.#maxBytes) this.#oldest = this.#headBytes;
    }
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

/** At most three bytes belong to the character that was cut, wherever the pieces meet. */
function withoutBrokenStart(pieces: Buffer[]): Buffer[] {
  let left = 3;
  return pieces.map((piece) => {
    let start = 0;
    while (start < left && isContinuation(piece[start])) start++;
    left = start === piece.length ? left - start : 0;
    return piece.subarray(start);
  });
}

/** Piece by piece, and without a join: either would hold everything twice. */
function decode(pieces: Buffer[]): string {
  const decoder = new StringDecoder("utf8");
  return pieces.reduce((text, piece) => text + decoder.write(piece), "") + decoder.end();
}
