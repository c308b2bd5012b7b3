import { withoutMark } from "../../lib/utf8.js";
import { trimStart } from "../../lib/white-space.js";
import { recognisePatchScript } from "../command/read-command.js";
import { workdirOf } from "../define-tool.js";
import {
  type ApplyOptions,
  applyEdits,
  changeOf,
  editsOfPatch,
  type FileEdit,
  filesOfEdit,
  type MadeChange,
  type PatchChange,
} from "./apply-edits.js";
import type { EditFailure, PatchFiles } from "./patch-files.js";
import { parsePatch } from "./patch-format.js";
import { PathLocks, realPaths } from "./path-locks.js";
import { editsOfDiff, looksLikeDiff, parseDiff } from "./unified-diff.js";

export type PatchOutcome =
  | { kind: "applied"; changes: MadeChange[]; durationMs: number }
  | { kind: "empty" }
  /** The text is not a patch, or does not fit the files. Nothing was changed. */
  | ({ kind: "refused" } & EditFailure)
  /** A file could not be changed. `changes` were made before that and stay. */
  | ({ kind: "failed"; changes: MadeChange[]; durationMs: number } & EditFailure);

/** An abort stops before the next change; earlier changes stay. */
interface PatchOptions extends ApplyOptions {
  /** Continues a failed attempt with other access to the files, after the edits that were made. */
  resume?: { files: PatchFiles; doneCount: number } | undefined;
}

/** Applies patches to the files of one sandbox. Patches with a file in common wait for each other. */
export interface Patcher {
  apply(patch: ReadPatch, options?: PatchOptions): Promise<PatchOutcome>;
}

/** `files` is called when a patch needs it, since the sandbox may still be starting. */
export function createPatcher(files: () => PatchFiles | Promise<PatchFiles>): Patcher {
  const locks = new PathLocks(async (paths) => await realPaths(await files(), paths));
  return {
    async apply(patch, options = {}) {
      if (patch.reason !== null) return { kind: "refused", reason: patch.reason };
      if (patch.edits.length === 0) return { kind: "empty" };
      return await locks.run(patch.paths, async () => {
        options.signal?.throwIfAborted();
        const startedAt = performance.now();
        const { resume } = options;
        const edits = patch.edits.slice(resume?.doneCount ?? 0);
        const result = await applyEdits(resume?.files ?? (await files()), edits, options);
        return { ...result, durationMs: performance.now() - startedAt };
      });
    },
  };
}

/** A patch, read once for its review and for every attempt at it. */
export class ReadPatch {
  /** None if the text is not a patch. */
  readonly edits: readonly FileEdit[];
  /** Why the text is not a patch, else null. */
  readonly reason: string | null;

  private constructor(edits: readonly FileEdit[], reason: string | null) {
    this.edits = edits;
    this.reason = reason;
  }

  /** Reads a Begin/End patch, whose relative paths start at `cwd`. */
  static read(text: string, cwd: string): ReadPatch {
    const parsed = parsePatch(text);
    return parsed.kind === "invalid"
      ? new ReadPatch([], parsed.reason)
      : new ReadPatch(editsOfPatch(parsed.hunks, cwd), null);
  }

  /** Reads a patch in either format, also inside a shell heredoc for `apply_patch`. */
  static readAny(text: string, cwd: string): ReadPatch {
    const command = recognisePatchScript(text);
    return command?.kind === "patch"
      ? ReadPatch.#readBody(command.patch, workdirOf({ cwd }, command.directory))
      : ReadPatch.#readBody(text, cwd);
  }

  /** The changes that it would make. */
  get changes(): PatchChange[] {
    return this.edits.map(changeOf);
  }

  /** The distinct paths that it reads or changes. */
  get paths(): string[] {
    return [...new Set(this.edits.flatMap(filesOfEdit).map(({ path }) => path))];
  }

  static #readBody(text: string, cwd: string): ReadPatch {
    if (/^(?:\*\*\*|<<)/.test(trimStart(withoutMark(text))) || !looksLikeDiff(text))
      return ReadPatch.read(text, cwd);
    const parsed = parseDiff(text);
    return parsed.kind === "invalid"
      ? new ReadPatch([], parsed.reason)
      : new ReadPatch(editsOfDiff(parsed.files, cwd), null);
  }
}

/** The distinct paths that a Begin/End patch reads or changes; none if the text is not a patch. */
export function pathsOf(text: string, cwd: string): string[] {
  return ReadPatch.read(text, cwd).paths;
}
