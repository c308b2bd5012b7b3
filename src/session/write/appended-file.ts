import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  type Stats,
  writeSync,
} from "node:fs";

/** Writes some of the bytes, from `at` on, and tells how many. */
export type WriteBytes = (file: number, bytes: Uint8Array, at: number) => number;

/** Why lines are missing. */
export type FileTrouble =
  | { kind: "failed"; error: unknown }
  /** Somebody removed the file: what is written to it now, nobody will find. */
  | { kind: "deleted" };

/** Lines that cannot be written wait for a better time; of more than this the newest are given up. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** A new file for the user alone; one that is there already is refused. */
export function createFile(path: string, write?: WriteBytes): AppendedFile {
  return new AppendedFile(openSync(path, "ax+", 0o600), write);
}

/** A file that is there. Only a regular one will do. */
export function appendToFile(path: string): AppendedFile {
  // Without O_CREAT; and a FIFO must not keep us waiting.
  const { O_APPEND, O_RDWR, O_NONBLOCK } = constants;
  const file = openSync(path, O_APPEND | O_RDWR | O_NONBLOCK);
  if (fstatSync(file).isFile()) return new AppendedFile(file);
  closeSync(file);
  throw new Error("it is not a regular file");
}

/**
 * A file of lines that only grows. A line is there as a whole or not at all, as far as one process can see to it: of one that could be
 * written in part only, the part is taken back, or ended where that cannot be, and the line waits.
 */
export class AppendedFile {
  readonly #file: number;
  readonly #write: WriteBytes;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #givenUp = 0;
  /** The last line has no end yet. */
  #isTorn: boolean;
  #trouble: FileTrouble | null = null;

  constructor(file: number, write: WriteBytes = writeSync) {
    this.#file = file;
    this.#write = write;
    this.#isTorn = !endsWithNewline(file);
  }

  get trouble(): FileTrouble | null {
    return this.#trouble;
  }

  get missingLines(): number {
    return this.#waiting.length + this.#givenUp;
  }

  get isEmpty(): boolean {
    return fstatSync(this.#file).size === 0;
  }

  /** Never throws: `trouble` tells. `gap` makes the line that stands for lines given up. */
  append(line: string, { gap }: { gap: (count: number) => string }): void {
    if (this.#trouble?.kind === "deleted") return;
    this.#wait(Buffer.from(`${line}\n`));
    this.#settle(gap);
  }

  close(): void {
    closeSync(this.#file);
  }

  #wait(line: Buffer): void {
    if (this.#givenUp > 0 || this.#waitingBytes + line.length > MAX_WAITING_BYTES) {
      this.#givenUp++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
  }

  #settle(gap: (count: number) => string): void {
    if (fstatSync(this.#file).nlink === 0) {
      this.#trouble = { kind: "deleted" };
      this.#waiting = [];
      return;
    }
    try {
      this.#writeWaiting();
      if (this.#givenUp > 0) this.#writeLine(Buffer.from(`${gap(this.#givenUp)}\n`));
      this.#givenUp = 0;
      this.#trouble = null;
    } catch (error) {
      this.#trouble = { kind: "failed", error };
    }
  }

  #writeWaiting(): void {
    let written = 0;
    try {
      for (const line of this.#waiting) {
        this.#writeLine(line);
        written++;
      }
    } finally {
      for (const line of this.#waiting.splice(0, written)) this.#waitingBytes -= line.length;
    }
  }

  #writeLine(line: Buffer): void {
    const bytes = this.#isTorn ? Buffer.concat([Buffer.from("\n"), line]) : line;
    const before = fstatSync(this.#file).size;
    let at = 0;
    try {
      while (at < bytes.length) at += this.#write(this.#file, bytes, at);
      this.#isTorn = false;
    } catch (error) {
      this.#takeBack(before, at);
      throw error;
    }
  }

  /** Not where somebody else has written meanwhile. */
  #takeBack(sizeBefore: number, writtenBytes: number): void {
    if (writtenBytes === 0) return;
    try {
      if (fstatSync(this.#file).size !== sizeBefore + writtenBytes) this.#isTorn = true;
      else ftruncateSync(this.#file, sizeBefore);
    } catch {
      this.#isTorn = true;
    }
  }
}

function endsWithNewline(file: number): boolean {
  const { size }: Stats = fstatSync(file);
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  readSync(file, last, 0, 1, size - 1);
  return last[0] === NEWLINE;
}
