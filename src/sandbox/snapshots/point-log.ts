import { createReadStream } from "node:fs";
import { appendFile, stat, truncate } from "node:fs/promises";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import {
  nullish,
  number,
  object,
  oneOf,
  positiveInteger,
  read,
  type Shape,
  ShapeError,
  string,
} from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { LineReader } from "../../lib/line-reader.js";
import type { HostBase } from "../changes/workspace-change.js";
import {
  bytesJson,
  entryLine,
  type ManifestEntry,
  manifestBase,
  manifestBaseJson,
  pathBytes,
  readEntry,
} from "./manifest.js";

/** A restore point as it is stored. */
export interface StoredPoint {
  head: PointHead;
  entries: readonly PointEntry[];
  /** The offset in the file at which its last line ends. */
  endBytes: number;
}

/**
 * Reads the points of a log, the first one first. An incomplete point at the end is left out: its process was
 * killed, or is still writing it. Error: `snapshot.invalid`.
 */
export async function* readPoints(file: string): AsyncGenerator<StoredPoint> {
  let head: PointHead | null = null;
  let [entries, endBytes, count]: [PointEntry[], number, number] = [[], 0, 0];
  for await (const line of storedLines(file)) {
    endBytes += Buffer.byteLength(line) + 1;
    if (head === null) {
      head = readLine(readPointHead, line, file);
      if (head.point !== count + 1) throw unreadable(file, `point ${head.point} is not in its place`);
    } else entries.push(readLine(readPointEntry, line, file));
    if (entries.length < head.entries) continue;
    yield { head, entries, endBytes };
    [head, entries, count] = [null, [], count + 1];
  }
}

/** Appends points to a log. Only one process may do this at a time. */
export class PointLog {
  readonly #file: string;
  #endBytes: number;
  #count: number;

  private constructor(file: string, { endBytes, count }: { endBytes: number; count: number }) {
    this.#file = file;
    this.#endBytes = endBytes;
    this.#count = count;
  }

  /** Opens a log, which need not exist yet. Error: `snapshot.invalid`. */
  static async open(file: string): Promise<PointLog> {
    let [endBytes, count] = [0, 0];
    for await (const point of readPoints(file)) [endBytes, count] = [point.endBytes, point.head.point];
    return new PointLog(file, { endBytes, count });
  }

  /** Adds a point whole or not at all. Throws the file system's own errors. */
  async append(
    head: Omit<PointHead, "point" | "entries">,
    entries: readonly PointEntry[],
  ): Promise<PointHead> {
    const point = this.#count + 1;
    const text = Buffer.from(pointText({ point, ...head }, entries));
    await this.#cutTornEnd();
    await appendFile(this.#file, text, { mode: 0o600 });
    this.#endBytes += text.length;
    this.#count = point;
    return { point, ...head, entries: entries.length };
  }

  /**
   * Removes an incomplete point from the end, for example after the disk was full, so that none is in front
   * of the next point.
   */
  async #cutTornEnd(): Promise<void> {
    const size = await stat(this.#file).then(
      (found) => found.size,
      (error: unknown) => {
        if (errnoOf(error) === "ENOENT") return 0;
        throw error;
      },
    );
    if (size > this.#endBytes) await truncate(this.#file, this.#endBytes);
  }
}

/**
 * Why a point was taken. "call": a tool call changed the workspace; "undo": an earlier state was restored;
 * "applied": changes were made on the host; "end": the sandbox was closed.
 */
export type PointKind = "call" | "undo" | "applied" | "end";

/** The first line of a point. Lines of its entries follow. */
export interface PointHead {
  /** Counts from 1. */
  point: number;
  /** The time at which it was taken, as an ISO 8601 time in UTC. */
  at: string;
  kind: PointKind;
  /**
   * For "undo": the number of the point whose state was restored, 0 for the state at the start. Null for
   * other kinds.
   */
  restores?: number | null | undefined;
  /** The number of paths that have changed since the point before. */
  entries: number;
}

/** A path that has changed since the point before. */
export type PointEntry = ManifestEntry | SameEntry;

/** The path is the same as the host's again. */
interface SameEntry {
  path: Buffer;
  same: true;
  /** The host's state of the path after the sandbox's version was applied to it. */
  base?: HostBase | null | undefined;
}

const headShape: Shape<PointHead> = object({
  point: positiveInteger,
  at: string,
  kind: oneOf("call", "undo", "applied", "end"),
  restores: nullish(number),
  entries: number,
});

const isSame: Shape<true> = (value, path) => {
  if (value === true) return true;
  throw new ShapeError(path, "true");
};
const sameShape = object({ path: pathBytes, same: isSame, base: nullish(manifestBase) });

/** The lines of a point, with their line breaks. */
function pointText(head: Omit<PointHead, "entries">, entries: readonly PointEntry[]): string {
  const { point, at, kind, restores } = head;
  const first = JSON.stringify({ point, at, kind, restores, entries: entries.length });
  return [first, ...entries.map(pointEntryLine), ""].join("\n");
}

function pointEntryLine(entry: PointEntry): string {
  if (!("same" in entry)) return entryLine(entry);
  const base = entry.base ? { base: manifestBaseJson(entry.base) } : {};
  return JSON.stringify({ path: bytesJson(entry.path), same: true, ...base });
}

/** Error: `ShapeError`. */
function readPointHead(value: unknown): PointHead {
  return read(headShape, value);
}

/** Error: `ShapeError`. */
function readPointEntry(value: unknown): PointEntry {
  const isSameEntry = typeof value === "object" && value !== null && "same" in value;
  return isSameEntry ? read(sameShape, value) : readEntry(value);
}

export function pathOfEntry(entry: PointEntry): Buffer {
  return "same" in entry ? entry.path : entry.change.path;
}

/** A path has at most 4 096 bytes, which JSON may write as six characters each. */
const LONGEST_LINE_BYTES = 256 * 1024;

/** Reads the complete lines of a file; none if there is no such file. Error: `snapshot.invalid`. */
export async function* storedLines(path: string): AsyncGenerator<string, undefined> {
  const reader = new LineReader(LONGEST_LINE_BYTES);
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>)
      for (const line of reader.push(chunk)) {
        if (line.kind === "too-long") throw unreadable(path, "a line is too long");
        yield line.text;
      }
  } catch (cause) {
    const errno = errnoOf(cause);
    if (errno === undefined) throw cause;
    if (errno !== "ENOENT" && errno !== "ENOTDIR")
      throw unreadable(path, `it cannot be read: ${errno}`, cause);
  }
}

/** Error: `snapshot.invalid`. */
export function readLine<T>(shape: (value: unknown) => T, line: string | undefined, path: string): T {
  try {
    return shape(line === undefined ? undefined : parseJson(line));
  } catch (cause) {
    if (!(cause instanceof ShapeError)) throw cause;
    throw unreadable(path, cause.message, cause);
  }
}

function unreadable(path: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`the snapshot ${path} cannot be used: ${reason}`, { code: "snapshot.invalid", cause });
}
