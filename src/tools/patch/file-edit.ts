import { posix } from "node:path";
import { applyChunks, type Edited } from "./format/edit-text.js";
import type { Hunk, Patch } from "./format/patch.js";

/** An edit of one file, from a patch or a diff. */
export type FileEdit = FileAddition | FileDeletion | FileUpdate;

export interface FileName {
  written: string;
  /** Absolute. */
  path: string;
}

interface FileAddition {
  kind: "add";
  file: FileName;
  text: string;
  mode: number;
  mustBeNew: boolean;
}

interface FileDeletion {
  kind: "delete";
  file: FileName;
  /** Must result in an empty text, else the deletion is refused. Null: delete whatever the text is. */
  edit: EditText | null;
}

export interface FileUpdate {
  kind: "update";
  file: FileName;
  moveTo: FileName | null;
  mustBeNew: boolean;
  edit: EditText;
}

/** Edits a text. `fileName` is for messages. */
export type EditText = (text: string, fileName: string) => Edited;

export const DEFAULT_MODE = 0o644;

export function fileName(written: string, cwd: string): FileName {
  return { written, path: posix.resolve(cwd, written) };
}

export function editsOfPatch({ hunks }: Patch, cwd: string): FileEdit[] {
  return hunks.map((hunk) => editOfHunk(hunk, cwd));
}

function editOfHunk(hunk: Hunk, cwd: string): FileEdit {
  const file = fileName(hunk.path, cwd);
  switch (hunk.kind) {
    case "add": {
      const text = hunk.lines.map((line) => `${line}\n`).join("");
      return { kind: "add", file, text, mode: DEFAULT_MODE, mustBeNew: false };
    }
    case "delete":
      return { kind: "delete", file, edit: null };
    case "update": {
      const moveTo = hunk.moveTo === null ? null : fileName(hunk.moveTo, cwd);
      const edit: EditText = (text, name) => applyChunks(text, hunk.chunks, name);
      return { kind: "update", file, moveTo, mustBeNew: false, edit };
    }
  }
}

export function filesOfEdit(edit: FileEdit): FileName[] {
  return edit.kind === "update" && edit.moveTo !== null ? [edit.file, edit.moveTo] : [edit.file];
}
