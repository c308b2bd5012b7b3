/** A patch in the Begin/End format. */
export interface Patch {
  /** From the line `*** Environment ID:`. brig has only one environment and ignores it. */
  environmentId: string | null;
  hunks: Hunk[];
}

/** The change of one file. Paths are as written. */
export type Hunk =
  | { kind: "add"; path: string; lines: string[] }
  | { kind: "delete"; path: string }
  | { kind: "update"; path: string; moveTo: string | null; chunks: Chunk[] };

/** A place in a file, with its changes. */
export interface Chunk {
  /** The text after `@@ `: a line somewhere before the place. */
  anchor: string | null;
  changes: Change[];
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
