import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import { OutputBudget } from "./output-budget.js";

export type OutputStreamName = "stdout" | "stderr" | "pty";

/** A piece of output, from one stream. */
export interface OutputChunk {
  stream: OutputStreamName;
  data: Buffer;
}

/** A piece of output as it is followed. */
export interface FollowedChunk extends OutputChunk {
  /** How many bytes before it were dropped before they could be read. */
  lost: number;
}

/** What one reading gives. */
export interface OutputPart {
  chunks: OutputChunk[];
  /** The cursor to read on from. */
  next: number;
  /** How many bytes after the given cursor are not kept any more. */
  lost: number;
  /** Nothing comes after `next` any more. */
  ended: boolean;
}

export interface OutputPlace {
  /** A cursor counts the bytes of all streams together. Default: 0, the beginning. */
  after?: number | undefined;
  /** How long to wait if nothing comes after the cursor yet. Default: 0. */
  waitMs?: number | undefined;
  /** The most bytes to give, at least 1. Default: all. */
  maxBytes?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** How many bytes of the output of one process are kept, unless its sandbox has no room for that. */
export const KEPT_OUTPUT_BYTES = 16 * 1024 * 1024;
/** Short pieces of one stream are kept joined, up to so many bytes. */
const SEGMENT_BYTES = 64 * 1024;
const FIRST_SEGMENT_BYTES = 64;
/** What a segment takes besides its bytes. A command may change between its streams with every byte. */
const SEGMENT_OVERHEAD_BYTES = 256;

/** Successive bytes of one stream. */
interface Segment {
  stream: OutputStreamName;
  /** The cursor of the first byte that is kept. */
  start: number;
  room: Buffer;
  /** The part of `room` that is in use. */
  from: number;
  to: number;
}

/**
 * The latest output of a process, which any number of readers read from any place, each as fast as it likes. Adding to it never waits
 * for them: what there is no room for is dropped from the beginning, and readers are told how much that was.
 */
export class OutputLog {
  readonly #maxBytes: number;
  readonly #budget: OutputBudget;
  #segments: Segment[] = [];
  /** Segments before this one are dropped. They are not removed one by one, which would move all others each time. */
  #first = 0;
  #end = 0;
  #memoryBytes = 0;
  #hasEnded = false;
  #change: { came: Promise<void>; announce: () => void } | undefined;

  constructor(maxBytes = KEPT_OUTPUT_BYTES, budget = new OutputBudget(Number.MAX_SAFE_INTEGER)) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
  }

  /** The cursor after everything that has come so far. */
  get end(): number {
    return this.#end;
  }

  /** What is kept takes so much, the place around it included. */
  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  add(stream: OutputStreamName, data: Uint8Array): void {
    if (data.length === 0) return;
    const last = this.#segments.at(-1);
    if (last?.stream === stream && last.to + data.length <= SEGMENT_BYTES) this.#append(last, data);
    else this.#push(stream, data);
    this.#end += data.length;
    this.#dropBeforeCursor(this.#end - this.#maxBytes);
    this.#announce();
  }

  /** Counts bytes that came before all others, and are lost. */
  skip(bytes: number): void {
    this.#end += bytes;
  }

  /** Nothing is added any more. */
  close(): void {
    this.#hasEnded = true;
    this.#announce();
  }

  /** Frees what is kept. It counts as lost then. */
  clear(): void {
    this.#dropBeforeCursor(this.#end);
  }

  /** Drops the oldest bytes that are kept together. */
  dropOldest(): void {
    const oldest = this.#segments[this.#first];
    if (oldest !== undefined) this.#dropBeforeCursor(endOf(oldest));
  }

  /** Reads what comes after a cursor. Reading again gives the same, as long as it is kept. Error: the signal's reason. */
  async read({ after = 0, waitMs = 0, maxBytes, signal }: OutputPlace = {}): Promise<OutputPart> {
    signal?.throwIfAborted();
    if (waitMs > 0 && !this.#hasMore(after)) {
      using limit = new TimeLimit(waitMs, signal);
      try {
        while (!this.#hasMore(after)) await beforeAbort(this.#nextChange(), limit.signal);
      } catch (error) {
        if (!limit.isOver) throw error;
      }
    }
    return this.#part(after, maxBytes ?? Number.MAX_SAFE_INTEGER);
  }

  /** Gives what comes after a cursor until the process has ended. Error: the signal's reason. */
  async *follow(after: number, signal?: AbortSignal): AsyncGenerator<FollowedChunk, void, undefined> {
    let at = after;
    for (;;) {
      const part = await this.read({
        ...{ after: at, waitMs: Number.MAX_SAFE_INTEGER, maxBytes: SEGMENT_BYTES, signal },
      });
      let { lost } = part;
      for (const chunk of part.chunks) {
        yield { ...chunk, lost };
        lost = 0;
      }
      if (part.ended) return;
      at = part.next;
    }
  }

  #hasMore(after: number): boolean {
    return this.#hasEnded || this.#end > after;
  }

  #part(after: number, maxBytes: number): OutputPart {
    const chunks: OutputChunk[] = [];
    const begin = Math.max(after, this.#segments[this.#first]?.start ?? this.#end);
    let next = begin;
    for (let index = this.#indexAt(begin); index < this.#segments.length; index++) {
      const left = maxBytes - (next - begin);
      const { stream, room, from, to, start } = this.#segments[index] as Segment;
      if (left <= 0) break;
      const data = room.subarray(from + next - start, to).subarray(0, left);
      chunks.push({ stream, data });
      next += data.length;
    }
    return { chunks, next, lost: begin - after, ended: this.#hasEnded && next >= this.#end };
  }

  /** The segment with the byte that comes after a cursor. */
  #indexAt(cursor: number): number {
    let [low, high] = [this.#first, this.#segments.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (endOf(this.#segments[middle] as Segment) <= cursor) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #push(stream: OutputStreamName, data: Uint8Array): void {
    const room = Buffer.allocUnsafeSlow(Math.max(FIRST_SEGMENT_BYTES, data.length));
    room.set(data);
    this.#segments.push({ stream, start: this.#end, room, from: 0, to: data.length });
    this.#count(room.length + SEGMENT_OVERHEAD_BYTES);
  }

  #append(last: Segment, data: Uint8Array): void {
    const to = last.to + data.length;
    if (to > last.room.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(SEGMENT_BYTES, Math.max(to, 2 * last.room.length)));
      last.room.copy(larger, 0, 0, last.to);
      const more = larger.length - last.room.length;
      last.room = larger;
      last.room.set(data, last.to);
      last.to = to;
      this.#count(more);
    } else {
      last.room.set(data, last.to);
      last.to = to;
    }
  }

  #dropBeforeCursor(cursor: number): void {
    let freed = 0;
    for (; this.#first < this.#segments.length; this.#first++) {
      const oldest = this.#segments[this.#first] as Segment;
      const excess = cursor - oldest.start;
      if (excess < oldest.to - oldest.from) {
        if (excess > 0) {
          oldest.start += excess;
          oldest.from += excess;
        }
        break;
      }
      freed += oldest.room.length + SEGMENT_OVERHEAD_BYTES;
    }
    if (this.#first > this.#segments.length / 2) {
      this.#segments = this.#segments.slice(this.#first);
      this.#first = 0;
    }
    if (freed > 0) this.#count(-freed);
  }

  #count(bytes: number): void {
    this.#memoryBytes += bytes;
    this.#budget.change(this, bytes);
  }

  #nextChange(): Promise<void> {
    if (this.#change === undefined) {
      let announce: () => void = () => undefined;
      const came = new Promise<void>((resolve) => {
        announce = resolve;
      });
      this.#change = { came, announce };
    }
    return this.#change.came;
  }

  #announce(): void {
    this.#change?.announce();
    this.#change = undefined;
  }
}

function endOf({ start, from, to }: Segment): number {
  return start + to - from;
}
