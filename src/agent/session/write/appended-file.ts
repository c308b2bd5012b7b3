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

/** Writes some of the bytes, from `at` on, and returns how many. */
export type WriteBytes = (file: number, bytes: Uint8Array, at: number) => number;

/** Why lines are missing. */
export type FileTrouble =
  | { kind: "failed"; error: unknown }
  /** The file was removed, so nobody would find what is written to it. */
  | { kind: "deleted" };

/** Lines that cannot be written wait for the next attempt. New lines beyond this limit are given up. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Creates a file that only the user can read. Throws if it exists. */
export function createFile(path: string, write?: WriteBytes): AppendedFile {
  return new AppendedFile(openSync(path, "ax+", 0o600), write);
}

/** Opens an existing regular file. */
export function appendToFile(path: string): AppendedFile {
  // No O_CREAT, because the file must exist; O_NONBLOCK, because opening a FIFO would wait for its other end.
  const { O_APPEND, O_RDWR, O_NONBLOCK } = constants;
  const file = openSync(path, O_APPEND | O_RDWR | O_NONBLOCK);
  if (fstatSync(file).isFile()) return new AppendedFile(file);
  closeSync(file);
  throw new Error("it is not a regular file");
}

/**
 * A file of lines that only grows. A line that could only be written in part is removed again and waits for
 * the next attempt. If it cannot be removed, the next line starts after a newline.
 */
export class AppendedFile {
  readonly #file: number;
  readonly #write: WriteBytes;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #givenUp = 0;
  /** Whether the last line has no newline. */
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

  /** Sets `trouble` instead of throwing. `gap` returns the line that stands for lines that were given up. */
  append(line: string, { gap }: { gap: (count: number) => string }): void {
    if (this.#trouble?.kind === "deleted") return;
    this.#enqueue(Buffer.from(`${line}\n`));
    this.#flush(gap);
  }

  close(): void {
    closeSync(this.#file);
  }

  #enqueue(line: Buffer): void {
    if (this.#givenUp > 0 || this.#waitingBytes + line.length > MAX_WAITING_BYTES) {
      this.#givenUp++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
  }

  #flush(gap: (count: number) => string): void {
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
      this.#removePart(before, at);
      throw error;
    }
  }

  /** Removes a partly written line, unless another process has written after it. */
  #removePart(sizeBefore: number, writtenBytes: number): void {
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
