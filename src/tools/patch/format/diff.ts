/** The part of a unified diff about one file. */
export interface FileDiff {
  /** Null for a new file. */
  oldName: string | null;
  /** Null for a deleted file. */
  newName: string | null;
  /** Otherwise two different names are those of two versions of the same file. */
  isRename: boolean;
  /** Permission bits of a new file, if the diff has them. */
  mode: number | null;
  hunks: DiffHunk[];
}

export interface DiffHunk {
  /** The line number in the header, counted from 1; null if there is none. */
  oldStart: number | null;
  lines: DiffLine[];
}

export interface DiffLine {
  kind: "context" | "add" | "remove";
  text: string;
  /** Whether this is the last line of a file that does not end with a newline. */
  isUnended: boolean;
}
