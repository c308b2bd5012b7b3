/** A unified diff, as `diff -u` and `git diff` print it. */
export interface FileDiff {
  /** Null for a file that is new. */
  oldName: string | null;
  /** Null for a file that goes. */
  newName: string | null;
  /** The diff says that the file gets another name; two names without that are those of two versions of one file. */
  isRename: boolean;
  /** Permission bits of a new file, where the diff says them. */
  mode: number | null;
  hunks: DiffHunk[];
}

export interface DiffHunk {
  /** The line the header names, counted from 1, or null where it names none. */
  oldStart: number | null;
  lines: DiffLine[];
}

export interface DiffLine {
  kind: "context" | "add" | "remove";
  text: string;
  /** The last line of a file that does not end with a newline. */
  isUnended: boolean;
}
