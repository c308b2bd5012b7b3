import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { neutralise, neutraliseLine } from "../../../lib/terminal/terminal.js";
import type { Fact, ShownText } from "./view-model.js";

interface OpenFile {
  file: number;
  sizeBytes: number;
}

/**
 * Reads files below a run's folder. Their paths come from a result, and what is beside them from a container, so no link is
 * followed and no path leads out of the folder. Make one for each attempt: it asks about a directory once.
 *
 * Nothing here waits in the background. The files are small, and the page of a large run is made of a hundred thousand of them:
 * to hand each call to another thread would take five times as long as the call itself.
 */
export class RunFiles {
  readonly #folder: string;
  readonly #directories = new Map<string, boolean>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads a text of any size with no more than `maxBytes` in memory: its beginning and its end. Null if there is no such file. */
  text(path: readonly string[], { maxBytes }: { maxBytes: number }): ShownText | null {
    return this.#read(path, ({ file, sizeBytes }) => {
      if (sizeBytes <= maxBytes) {
        const text = new TextDecoder().decode(readAt(file, 0, sizeBytes));
        return { head: neutralise(text), omittedBytes: 0, tail: "" };
      }
      const half = Math.floor(maxBytes / 2);
      const [head, tail] = [readAt(file, 0, half), readAt(file, sizeBytes - half, half)];
      return {
        // Drops a character that the cut went through.
        head: neutralise(new TextDecoder().decode(head, { stream: true })),
        omittedBytes: sizeBytes - head.length - tail.length,
        tail: neutralise(new TextDecoder().decode(fromWholeCharacter(tail))),
      };
    });
  }

  /** Reads a whole file; null if there is none. */
  bytes(path: readonly string[], { maxBytes }: { maxBytes: number }): Buffer | "too-long" | null {
    return this.#read(path, ({ file, sizeBytes }) =>
      sizeBytes > maxBytes ? "too-long" : readAt(file, 0, sizeBytes),
    );
  }

  /** A file that cannot be read is shown like one that is missing. */
  #read<T>(path: readonly string[], read: (open: OpenFile) => T): T | null {
    const names = path.flatMap((part) => part.split("/"));
    if (names.length === 0 || names.some((name) => !isPlainName(name))) return null;
    let file: number | undefined;
    try {
      for (let depth = 1; depth < names.length; depth++)
        if (!this.#isDirectory(join(this.#folder, ...names.slice(0, depth)))) return null;
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      file = openSync(join(this.#folder, ...names), flags);
      const stat = fstatSync(file);
      return stat.isFile() ? read({ file, sizeBytes: stat.size }) : null;
    } catch {
      return null;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  #isDirectory(path: string): boolean {
    const known = this.#directories.get(path);
    if (known !== undefined) return known;
    const isDirectory = lstatSync(path).isDirectory();
    this.#directories.set(path, isDirectory);
    return isDirectory;
  }
}

function readAt(file: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const bytesRead = readSync(file, buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

function fromWholeCharacter(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}

function isPlainName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !name.includes("\0");
}

/** Names and single values are cut after so many characters. */
const MAX_LINE_CHARS = 300;

/** A name or a value from outside, as one short line that hides nothing. */
export function shownLine(text: string): string {
  const line = neutraliseLine(text.slice(0, 4 * MAX_LINE_CHARS));
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS - 1)}…` : line;
}

/** A text from outside. If it is too long, its beginning and its end stay. */
export function shownText(text: string, maxChars: number): ShownText {
  if (text.length <= maxChars) return { head: neutralise(text), omittedBytes: 0, tail: "" };
  const half = Math.floor(maxChars / 2);
  const omitted = text.slice(half, text.length - half);
  return {
    head: neutralise(text.slice(0, half)),
    omittedBytes: Buffer.byteLength(omitted),
    tail: neutralise(text.slice(text.length - half)),
  };
}

export function fact(name: string, value: string | number | boolean): Fact {
  return { name: shownLine(name), value: shownLine(String(value)) };
}
