/** A patch in the Begin/End format, as a model writes it. */
export interface Patch {
  /** What an `*** Environment ID:` line says; brig has one environment, so nothing depends on it. */
  environmentId: string | null;
  hunks: Hunk[];
}

/** What is done to one file. Paths are as written. */
export type Hunk =
  | { kind: "add"; path: string; lines: string[] }
  | { kind: "delete"; path: string }
  | { kind: "update"; path: string; moveTo: string | null; chunks: Chunk[] };

/** One place of a file to change. */
export interface Chunk {
  /** A line that comes somewhere before the place: the text after `@@ `. */
  anchor: string | null;
  changes: Change[];
  /** The place is the end of the file. */
  isAtEnd: boolean;
}

export interface Change {
  kind: "context" | "add" | "remove";
  text: string;
}

export const BEGIN = "*** Begin Patch";
export const END = "*** End Patch";
export const ADD = "*** Add File: ";
export const DELETE = "*** Delete File: ";
export const UPDATE = "*** Update File: ";
export const MOVE = "*** Move to: ";
export const END_OF_FILE = "*** End of File";
export const ENVIRONMENT = "*** Environment ID:";
export const ANCHOR = "@@";
