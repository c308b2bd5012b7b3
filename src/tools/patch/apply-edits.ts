import { posix } from "node:path";
import { decodeUtf8 } from "../../lib/utf8.js";
import { describeOsError, osErrors } from "../os-error.js";
import { applyChunks, type Edited } from "./edit-text.js";
import {
  type EditFailure,
  failedTo,
  failureOf,
  isMissing,
  MAX_FILE_BYTES,
  type PatchFiles,
  type PatchWrite,
} from "./patch-files.js";
import type { Hunk } from "./patch-format.js";

/** An edit of one file, from a patch or a diff. */
export type FileEdit = FileAddition | FileDeletion | FileUpdate;

interface FileName {
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

interface FileUpdate {
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

export function editsOfPatch(hunks: readonly Hunk[], cwd: string): FileEdit[] {
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

export interface PatchChange {
  kind: "add" | "update" | "delete";
  /** As written in the patch; the new path of a moved file. */
  name: string;
  /** Absolute; the new path of a moved file. */
  path: string;
  movedFrom: string | null;
}

export function changeOf(edit: FileEdit): PatchChange {
  const moveTo = edit.kind === "update" ? edit.moveTo : null;
  const { written, path } = moveTo ?? edit.file;
  const movedFrom = moveTo === null || moveTo.path === edit.file.path ? null : edit.file.path;
  return { kind: edit.kind, name: written, path, movedFrom };
}

/** A change that was made, with the texts of the file. */
export interface MadeChange extends PatchChange {
  /** Null if there was no such file, or if it was not read because the edit replaces it as a whole. */
  before: string | null;
  /** Null if the edit deletes the file. */
  after: string | null;
}

export type PatchResult =
  | { kind: "applied"; changes: MadeChange[] }
  /** The edits do not fit the files. Nothing was changed. */
  | ({ kind: "refused" } & EditFailure)
  /** A change failed. `changes` were made before it and stay. */
  | ({ kind: "failed"; changes: MadeChange[] } & EditFailure);

interface EditOptions {
  signal?: AbortSignal | undefined;
}

export interface ApplyOptions extends EditOptions {
  /** Called before the first edit, when all of them are known to fit. */
  onStart?: ((changes: readonly PatchChange[]) => void) | undefined;
  /** Called after `onStart` when no more edits will be made, also because of an abort or a lost sandbox. */
  onEnd?: ((changes: readonly MadeChange[], end: { success: boolean }) => void) | undefined;
}

/** Checks that all edits fit, then makes them in order. An abort stops before the next change. */
export async function applyEdits(
  files: PatchFiles,
  edits: readonly FileEdit[],
  options: ApplyOptions = {},
): Promise<PatchResult> {
  const plan = await planEdits(files, edits, options);
  if ("reason" in plan) return { kind: "refused", ...plan };
  options.onStart?.(edits.map(changeOf));
  const changes: MadeChange[] = [];
  try {
    const failure = await makeEdits(plan, { files, signal: options.signal, changes });
    return failure === null ? { kind: "applied", changes } : { kind: "failed", ...failure, changes };
  } finally {
    options.onEnd?.(changes, { success: changes.length === edits.length });
  }
}

/** An edit that fits, and how to make it. */
type PlannedEdit = { change: MadeChange } & Making;

/** One request can do several edits that only write a file. */
type Making = { write: PatchWrite } | { steps: readonly Step[] };

type Step = (files: PatchFiles, options: EditOptions) => Promise<EditFailure | null>;

/** Applies the edits one after the other to the texts of the files, without changing any file. */
async function planEdits(
  files: PatchFiles,
  edits: readonly FileEdit[],
  options: EditOptions,
): Promise<PlannedEdit[] | EditFailure> {
  const tree = await readTree(files, edits, options);
  const plan: PlannedEdit[] = [];
  for (const edit of edits) {
    const change = changeOf(edit);
    const before = textIn(tree, edit.file.path);
    const making = planEdit(tree, edit);
    if ("reason" in making) return making;
    plan.push({ change: { ...change, before, after: textIn(tree, change.path) }, ...making });
  }
  return plan;
}

/** The files as the edits so far leave them. A file that is not here is missing, or nobody needs its text. */
type Tree = Map<string, FileState>;

type FileState = TextState | { kind: "unreadable"; failure: EditFailure } | { kind: "missing" };

interface TextState {
  kind: "text";
  text: string;
  mode: number;
  /** Device and inode; null for a file that the patch adds. */
  identity: string | null;
  /** The patch also names this file by another path. */
  hasOtherPath: boolean;
}

const missing: FileState = { kind: "missing" };

function stateOf(tree: Tree, path: string): FileState {
  return tree.get(path) ?? missing;
}

function textIn(tree: Tree, path: string): string | null {
  const state = stateOf(tree, path);
  return state.kind === "text" ? state.text : null;
}

const READS_AT_ONCE = 32;

/** Reads every file that an edit changes, or that must not exist. */
async function readTree(files: PatchFiles, edits: readonly FileEdit[], options: EditOptions): Promise<Tree> {
  const wanted = edits.flatMap((edit) => {
    const isNew = edit.kind === "add" && !edit.mustBeNew;
    const target = edit.kind === "update" && edit.mustBeNew ? edit.moveTo : null;
    return [...(isNew ? [] : [edit.file.path]), ...(target === null ? [] : [target.path])];
  });
  const paths = [...new Set(wanted)];
  const states: (readonly [string, FileState])[] = [];
  for (let at = 0; at < paths.length; at += READS_AT_ONCE) {
    const reads = paths
      .slice(at, at + READS_AT_ONCE)
      .map(async (path) => [path, await readState(files, path, options)] as const);
    states.push(...(await Promise.all(reads)));
  }
  const firsts = new Map<string | null, TextState>();
  for (const [, state] of states) {
    if (state.kind !== "text") continue;
    const first = firsts.get(state.identity);
    if (first === undefined) firsts.set(state.identity, state);
    else first.hasOtherPath = state.hasOtherPath = true;
  }
  return new Map(states);
}

async function readState(files: PatchFiles, path: string, { signal }: EditOptions): Promise<FileState> {
  try {
    const [bytes, { mode, dev, ino }] = await Promise.all([
      files.read(path, { maxBytes: MAX_FILE_BYTES, signal }),
      files.stat(path, { followSymlinks: true, signal }),
    ]);
    const decoded = decodeUtf8(bytes);
    if (decoded.kind === "invalid") return { kind: "unreadable", failure: { reason: decoded.reason } };
    return { ...decoded, mode: mode & 0o777, identity: `${dev}:${ino}`, hasOtherPath: false };
  } catch (error) {
    const failure = failureOf(path, error);
    return failure.errno === "ENOENT" ? missing : { kind: "unreadable", failure };
  }
}

function planEdit(tree: Tree, edit: FileEdit): Making | EditFailure {
  const unnameable = filesOfEdit(edit).find(({ path }) => path.includes("\0"));
  if (unnameable !== undefined) return { reason: `'${unnameable.written}' is invalid on 'linux'` };
  const { path } = edit.file;
  const state = stateOf(tree, path);
  switch (edit.kind) {
    case "add": {
      if (edit.mustBeNew && state.kind !== "missing") return { reason: `${path} exists already` };
      const { text, mode } = edit;
      tree.set(path, { kind: "text", text, mode, identity: null, hasOtherPath: false });
      return { write: { path, data: text, mode } };
    }
    case "delete": {
      if (state.kind !== "text") return unread(`read ${path}`, state);
      const rest = edit.edit?.(state.text, path);
      if (rest?.kind === "mismatch") return { reason: rest.reason };
      if (rest !== undefined && rest.text !== "")
        return { reason: `${path} has more lines than the patch deletes` };
      tree.set(path, missing);
      return { steps: [deletion(path)] };
    }
    case "update": {
      if (state.kind !== "text") return unread(`read file to update ${path}`, state);
      return planUpdate(tree, edit, state);
    }
  }
}

function planUpdate(tree: Tree, update: FileUpdate, state: TextState): Making | EditFailure {
  const { path } = update.file;
  const edited = update.edit(state.text, path);
  if (edited.kind === "mismatch") return { reason: edited.reason };
  const target = update.moveTo?.path ?? path;
  const isMove = target !== path;
  if (isMove && update.mustBeNew && stateOf(tree, target).kind !== "missing")
    return { reason: `${target} exists already` };
  if (isMove) tree.set(path, missing);
  tree.set(target, { ...state, text: edited.text });
  const write = { path: target, data: edited.text, mode: state.mode };
  if (!isMove && !state.hasOtherPath) return { write };
  const writing = state.hasOtherPath ? rewriting(update, write) : writingOf(write);
  return { steps: isMove ? [writing, removal(path, target)] : [writing] };
}

function unread(edit: string, state: Exclude<FileState, TextState>): EditFailure {
  return failedTo(edit, state.kind === "missing" ? noSuchFile : state.failure);
}

const noSuchFile: EditFailure = { reason: describeOsError(osErrors.ENOENT), errno: "ENOENT" };

interface Work extends EditOptions {
  files: PatchFiles;
  changes: MadeChange[];
}

/** Adds each finished edit to `changes`. Returns null, or why the first edit failed that did. */
async function makeEdits(
  plan: readonly PlannedEdit[],
  { files, signal, changes }: Work,
): Promise<EditFailure | null> {
  const addChanges = (count: number) => {
    for (const { change } of plan.slice(changes.length, changes.length + count)) changes.push(change);
  };
  // A request stops at the first write whose directory is missing, and the rest was sent in vain. So the
  // requests after such a failure start small.
  let maxWrites = Number.POSITIVE_INFINITY;
  for (let edit = plan[0]; edit !== undefined; edit = plan[changes.length]) {
    if ("steps" in edit) {
      for (const step of edit.steps) {
        signal?.throwIfAborted();
        const failure = await step(files, { signal });
        if (failure !== null) return failure;
      }
      addChanges(1);
      continue;
    }
    const writes = plainWrites(plan.slice(changes.length, changes.length + maxWrites));
    const { written, failure } = await files.writeEach(writes, { signal });
    addChanges(written);
    const next = writes[written];
    maxWrites = next === undefined ? maxWrites * 2 : 1;
    if (next === undefined) continue;
    const undone = await retryInNewDirectory(files, { file: next, failure }, { signal });
    if (undone !== null) return undone;
    addChanges(1);
  }
  return null;
}

/** The first edits that only write a file each. */
function plainWrites(plan: readonly PlannedEdit[]): PatchWrite[] {
  const end = plan.findIndex((edit) => "steps" in edit);
  return plan
    .slice(0, end === -1 ? plan.length : end)
    .flatMap((edit) => ("write" in edit ? [edit.write] : []));
}

function writingOf(file: PatchWrite): Step {
  return async (files, options) => {
    const { failure } = await files.writeEach([file], options);
    return failure === null ? null : await retryInNewDirectory(files, { file, failure }, options);
  };
}

/** Reads the file again and edits that text: an earlier step may have changed the file by another path. */
function rewriting({ file: { path }, edit }: FileUpdate, write: PatchWrite): Step {
  return async (files, options) => {
    const state = await readState(files, path, options);
    if (state.kind !== "text") return unread(`read file to update ${path}`, state);
    const edited = edit(state.text, path);
    if (edited.kind === "mismatch") return { reason: edited.reason };
    return await writingOf({ ...write, data: edited.text })(files, options);
  };
}

function deletion(path: string): Step {
  return (files, options) => attempt(`delete file ${path}`, path, () => files.remove(path, options));
}

/** Removes the old path of a moved file, unless the new one leads to the same file, e.g. through a link. */
function removal(path: string, movedTo: string): Step {
  return (files, options) =>
    attempt(`remove original ${path}`, path, async () => {
      const [original, moved] = await Promise.all([
        files.stat(path, { ...options, followSymlinks: false }),
        files.stat(movedTo, { ...options, followSymlinks: true }),
      ]);
      if (original.dev !== moved.dev || original.ino !== moved.ino) await files.remove(path, options);
    });
}

/** After a failed write: creates the directory if it was missing, and tries again. */
async function retryInNewDirectory(
  files: PatchFiles,
  { file, failure: firstFailure }: { file: PatchWrite; failure: unknown },
  options: EditOptions,
): Promise<EditFailure | null> {
  if (!isMissing(firstFailure)) return writeFailure(file.path, firstFailure);
  const directory = posix.dirname(file.path);
  const noDirectory = await attempt(`create parent directories for ${file.path}`, directory, () =>
    files.mkdir(directory, { ...options, recursive: true }),
  );
  if (noDirectory !== null) return noDirectory;
  const { failure } = await files.writeEach([file], options);
  return failure === null ? null : writeFailure(file.path, failure);
}

function writeFailure(path: string, failure: unknown): EditFailure {
  return failedTo(`write file ${path}`, failureOf(path, failure));
}

async function attempt(edit: string, path: string, action: () => Promise<void>): Promise<EditFailure | null> {
  try {
    await action();
    return null;
  } catch (error) {
    return failedTo(edit, failureOf(path, error));
  }
}
