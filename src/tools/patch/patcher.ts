import { withoutMark } from "../../lib/utf8.js";
import { trimStart } from "../../lib/white-space.js";
import { workdirOf } from "../tool-needs.js";
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
import { recognisePatchScript } from "./patch-command.js";
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
  cwd: string;
  /** Continues a failed attempt with other access to the files, after the edits that were made. */
  resume?: { files: PatchFiles; doneCount: number } | undefined;
}

/** Applies patches to the files of one sandbox. Patches with a file in common wait for each other. */
export interface Patcher {
  applyPatch(text: string, options: PatchOptions): Promise<PatchOutcome>;
  /** A patch in either format, also inside a shell heredoc for `apply_patch`. */
  applyAnyPatch(text: string, options: PatchOptions): Promise<PatchOutcome>;
}

/** `files` is called when a patch needs it, since the sandbox may still be starting. */
export function createPatcher(files: () => PatchFiles | Promise<PatchFiles>): Patcher {
  const locks = new PathLocks(async (paths) => await realPaths(await files(), paths));
  const apply = async (parsed: ParsedEdits, options: PatchOptions): Promise<PatchOutcome> => {
    if (parsed.kind === "invalid") return { kind: "refused", reason: parsed.reason };
    if (parsed.edits.length === 0) return { kind: "empty" };
    return await locks.run(pathsOfEdits(parsed.edits), async () => {
      options.signal?.throwIfAborted();
      const startedAt = performance.now();
      const { resume } = options;
      const edits = parsed.edits.slice(resume?.doneCount ?? 0);
      const result = await applyEdits(resume?.files ?? (await files()), edits, options);
      return { ...result, durationMs: performance.now() - startedAt };
    });
  };
  return {
    applyPatch: (text, options) => apply(parseEdits(text, options.cwd), options),
    applyAnyPatch: (text, options) => apply(parseAnyEdits(text, options.cwd), options),
  };
}

/** The changes that a Begin/End patch would make; none if the text is not a patch. */
export function changesOf(text: string, cwd: string): PatchChange[] {
  const parsed = parseEdits(text, cwd);
  return parsed.kind === "invalid" ? [] : parsed.edits.map(changeOf);
}

/** The distinct paths that a Begin/End patch reads or changes; none if the text is not a patch. */
export function pathsOf(text: string, cwd: string): string[] {
  const parsed = parseEdits(text, cwd);
  return parsed.kind === "invalid" ? [] : pathsOfEdits(parsed.edits);
}

function pathsOfEdits(edits: readonly FileEdit[]): string[] {
  return [...new Set(edits.flatMap(filesOfEdit).map(({ path }) => path))];
}

type ParsedEdits = { kind: "edits"; edits: FileEdit[] } | { kind: "invalid"; reason: string };

function parseEdits(text: string, cwd: string): ParsedEdits {
  const parsed = parsePatch(text);
  return parsed.kind === "invalid" ? parsed : { kind: "edits", edits: editsOfPatch(parsed.hunks, cwd) };
}

function parseAnyEdits(text: string, cwd: string): ParsedEdits {
  const command = recognisePatchScript(text);
  if (command.kind === "patch") {
    return parseBody(command.patch, workdirOf({ cwd }, command.directory));
  }
  return parseBody(text, cwd);
}

function parseBody(text: string, cwd: string): ParsedEdits {
  if (/^(?:\*\*\*|<<)/.test(trimStart(withoutMark(text))) || !looksLikeDiff(text))
    return parseEdits(text, cwd);
  const parsed = parseDiff(text);
  return parsed.kind === "invalid" ? parsed : { kind: "edits", edits: editsOfDiff(parsed.files, cwd) };
}
