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
import {
  bytesJson,
  entryLine,
  type ManifestBase,
  type ManifestEntry,
  manifestBase,
  manifestBaseJson,
  pathBytes,
  readEntry,
} from "./manifest.js";

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
  base?: ManifestBase | null | undefined;
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
export function pointText(head: Omit<PointHead, "entries">, entries: readonly PointEntry[]): string {
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
export function readPointHead(value: unknown): PointHead {
  return read(headShape, value);
}

/** Error: `ShapeError`. */
export function readPointEntry(value: unknown): PointEntry {
  const isSameEntry = typeof value === "object" && value !== null && "same" in value;
  return isSameEntry ? read(sameShape, value) : readEntry(value);
}

export function pathOfEntry(entry: PointEntry): Buffer {
  return "same" in entry ? entry.path : entry.change.path;
}
