import { join } from "node:path";
import { formatBytes } from "../../../lib/bytes.js";
import { decodeUtf8 } from "../../../lib/utf8.js";
import type { TaskNotes } from "../notes/task-notes.js";
import { readWhole } from "./read-file.js";

/** `path` is relative to the task's directory, with `/`. */
export type TreeEntry =
  | { kind: "directory"; path: string }
  | { kind: "file"; path: string; bytes: number; isExecutable: boolean; sha256: string }
  | { kind: "link"; path: string; target: string };

/** No text that a reader parses, or that a model is given, needs to be longer. */
const MAX_TEXT_BYTES = 1024 * 1024;

/** The files of a task as they were when they were listed. */
export class TaskTree {
  readonly root: string;
  readonly #entries: ReadonlyMap<string, TreeEntry>;

  constructor(root: string, entries: ReadonlyMap<string, TreeEntry>) {
    this.root = root;
    this.#entries = entries;
  }

  entries(): Iterable<TreeEntry> {
    return this.#entries.values();
  }

  hasFile(path: string): boolean {
    return this.#entries.get(path)?.kind === "file";
  }

  hasDirectory(path: string): boolean {
    return this.#entries.get(path)?.kind === "directory";
  }

  /** Everything in a directory, at any depth. */
  below(directory: string): TreeEntry[] {
    return [...this.#entries.values()].filter(({ path }) => path.startsWith(`${directory}/`));
  }

  absolute(path: string): string {
    return join(this.root, path);
  }

  /** The text of a file. Null, with a fault in the notes, if it is missing or is no such text. */
  text(path: string, notes: TaskNotes, { hint }: { hint?: string } = {}): string | null {
    const entry = this.#entries.get(path);
    const place = { file: path, ...(hint === undefined ? {} : { hint }) };
    if (entry === undefined) notes.refuse("is missing", place);
    else if (entry.kind !== "file")
      notes.refuse(`is a ${entry.kind === "link" ? "symbolic link" : "directory"} and must be a file`, place);
    else if (entry.bytes > MAX_TEXT_BYTES)
      notes.refuse(
        `has ${formatBytes(entry.bytes)}, which is more than ${formatBytes(MAX_TEXT_BYTES)}`,
        place,
      );
    else return this.#decoded(entry, notes);
    return null;
  }

  #decoded({ path, sha256 }: { path: string; sha256: string }, notes: TaskNotes): string | null {
    const read = readWhole(this.absolute(path), MAX_TEXT_BYTES);
    if (read === null || read.sha256 !== sha256) {
      notes.refuse("was changed while it was read", { file: path });
      return null;
    }
    const decoded = decodeUtf8(read.bytes);
    if (decoded.kind === "text") return withoutMark(decoded.text);
    notes.refuse(`is not UTF-8 text: ${decoded.reason}`, { file: path });
    return null;
  }
}

/** Removes the byte order mark that some editors write. */
function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}
