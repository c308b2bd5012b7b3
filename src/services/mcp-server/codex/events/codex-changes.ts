import { posix } from "node:path";
import type { Chunk, FileChange, Hunk } from "../../../../tools/index.js";
import { parsePatch } from "../../../../tools/index.js";

const CHANGE_MARKS = { context: " ", add: "+", remove: "-" } as const;

/**
 * The changes of a patch by absolute path, as Codex describes them. The content of a deleted file is not
 * known, and is left empty. The hunks of a diff have the headers of the patch instead of line numbers.
 */
export function codexChanges(
  { changes, patch }: { changes: readonly FileChange[]; patch: string },
  cwd: string,
): Record<string, object> {
  const parsed = parsePatch(patch);
  const hunks = parsed.kind === "patch" ? parsed.hunks : [];
  return Object.fromEntries(
    changes.map(({ path, kind }) => {
      const absolute = posix.resolve(cwd, path);
      const hunk = hunks.find((one) => one.kind === kind && posix.resolve(cwd, one.path) === absolute);
      return [absolute, codexChange(kind, hunk, cwd)];
    }),
  );
}

function codexChange(kind: FileChange["kind"], hunk: Hunk | undefined, cwd: string): object {
  switch (kind) {
    case "add": {
      const lines = hunk?.kind === "add" ? hunk.lines : [];
      return { type: "add", content: lines.map((line) => `${line}\n`).join("") };
    }
    case "delete":
      return { type: "delete", content: "" };
    case "update": {
      const { chunks, moveTo } = hunk?.kind === "update" ? hunk : { chunks: [], moveTo: null };
      return {
        type: "update",
        unified_diff: chunks.map(chunkText).join(""),
        move_path: moveTo === null ? null : posix.resolve(cwd, moveTo),
      };
    }
    default:
      return kind satisfies never;
  }
}

function chunkText({ anchor, changes }: Chunk): string {
  const header = anchor === null ? "@@" : `@@ ${anchor}`;
  return `${[header, ...changes.map(({ kind, text }) => CHANGE_MARKS[kind] + text)].join("\n")}\n`;
}
