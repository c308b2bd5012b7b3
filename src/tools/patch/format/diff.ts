/** The part of a unified diff about one file. */
export interface FileDiff {
  oldName: string | null;
  newName: string | null;
  /** Otherwise two different names are those of two versions of the same file. */
  isRename: boolean;
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
