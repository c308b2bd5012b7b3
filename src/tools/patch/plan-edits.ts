import { decodeUtf8 } from "../../lib/utf8.js";
import { describeOsError, isFileError, osErrors } from "../os-error.js";
import { DEFAULT_MODE, type FileEdit, type FileUpdate, filesOfEdit } from "./file-edit.js";
import { type EditFailure, failedTo, failureOf, MAX_FILE_BYTES, type PatchFiles } from "./patch-files.js";

/** One change of the tree. */
export type Step =
  | { kind: "write"; path: string; text: string; mode: number }
  /** As `write`, but the text is made at the time of writing: an earlier step may have changed the file under another name. */
  | { kind: "rewrite"; path: string; from: string; edit: FileUpdate["edit"]; mode: number }
  | { kind: "delete"; path: string }
  /** The old name of a moved file goes. */
  | { kind: "remove-original"; path: string; movedTo: string };

/** What has to be done for each edit, or why the edits cannot be made. */
export type Plan = { kind: "steps"; steps: Step[][] } | Refusal;

type Refusal = EditFailure & { kind: "refused" };

export interface EditOptions {
  signal?: AbortSignal | undefined;
}

/** Works out what the edits, one after the other, make of the files. Changes nothing. */
export async function planEdits(
  files: PatchFiles,
  edits: readonly FileEdit[],
  options: EditOptions,
): Promise<Plan> {
  const tree = await readTree(files, edits, options);
  const steps: Step[][] = [];
  for (const edit of edits) {
    const planned = planEdit(tree, edit);
    if ("kind" in planned) return planned;
    steps.push(planned);
  }
  return { kind: "steps", steps };
}

/** A file as it is at some point of the patch. */
type FileState = TextState | { kind: "unreadable"; failure: EditFailure } | { kind: "missing" };

interface TextState {
  kind: "text";
  text: string;
  mode: number;
  /** The patch names the file in another way too. */
  hasTwin: boolean;
}

type Tree = Map<string, FileState>;

const missing: FileState = { kind: "missing" };

function planEdit(tree: Tree, edit: FileEdit): Step[] | Refusal {
  const unnameable = filesOfEdit(edit).find(({ path }) => path.includes("\0"));
  if (unnameable !== undefined) return refused(`'${unnameable.written}' is invalid on 'linux'`);
  switch (edit.kind) {
    case "add": {
      const { path } = edit.file;
      if (edit.mustBeNew && isPresent(tree, path)) return refused(`${path} exists already`);
      tree.set(path, { kind: "text", text: edit.text, mode: edit.mode, hasTwin: false });
      return [{ kind: "write", path, text: edit.text, mode: edit.mode }];
    }
    case "delete": {
      const { path } = edit.file;
      const state = tree.get(path) ?? missing;
      if (state.kind !== "text") return unread(`read ${path}`, state);
      const rest = edit.edit?.(state.text, path);
      if (rest?.kind === "mismatch") return refused(rest.reason);
      if (rest !== undefined && rest.text !== "")
        return refused(`${path} has more lines than the patch deletes`);
      tree.set(path, missing);
      return [{ kind: "delete", path }];
    }
    case "update":
      return planUpdate(tree, edit);
  }
}

function planUpdate(tree: Tree, { file: { path }, moveTo, mustBeNew, edit }: FileUpdate): Step[] | Refusal {
  const state = tree.get(path) ?? missing;
  if (state.kind !== "text") return unread(`read file to update ${path}`, state);
  const edited = edit(state.text, path);
  if (edited.kind === "mismatch") return refused(edited.reason);
  const target = moveTo?.path ?? path;
  const isMove = target !== path;
  if (isMove && mustBeNew && isPresent(tree, target)) return refused(`${target} exists already`);
  if (isMove) tree.set(path, missing);
  tree.set(target, { ...state, text: edited.text });
  const { mode } = state;
  const write: Step = state.hasTwin
    ? { kind: "rewrite", path: target, from: path, edit, mode }
    : { kind: "write", path: target, text: edited.text, mode };
  return isMove ? [write, { kind: "remove-original", path, movedTo: target }] : [write];
}

function isPresent(tree: Tree, path: string): boolean {
  return (tree.get(path) ?? missing).kind !== "missing";
}

function refused(reason: string): Refusal {
  return { kind: "refused", reason };
}

function unread(edit: string, state: Exclude<FileState, TextState>): Refusal {
  const failure = state.kind === "missing" ? noSuchFile : state.failure;
  return { kind: "refused", ...failedTo(edit, failure) };
}

const noSuchFile: EditFailure = { reason: describeOsError(osErrors.ENOENT), errno: "ENOENT" };

/** How many files are looked at at a time. */
const BATCH = 32;

async function inBatches<T>(items: readonly T[], look: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += BATCH) await Promise.all(items.slice(at, at + BATCH).map(look));
}

/** Every file whose text an edit needs, or whose absence. */
async function readTree(files: PatchFiles, edits: readonly FileEdit[], options: EditOptions): Promise<Tree> {
  const wanted = new Map<string, { needsMode: boolean }>();
  for (const edit of edits) {
    if (edit.kind !== "add" || edit.mustBeNew) want(wanted, edit.file.path, isMove(edit));
    if (edit.kind === "update" && edit.moveTo !== null && edit.mustBeNew)
      want(wanted, edit.moveTo.path, false);
  }
  const tree: Tree = new Map();
  await inBatches([...wanted], async ([path, { needsMode }]) => {
    tree.set(path, await readState(files, path, { ...options, needsMode }));
  });
  await markTwins(files, tree, options);
  return tree;
}

function want(wanted: Map<string, { needsMode: boolean }>, path: string, needsMode: boolean): void {
  wanted.set(path, { needsMode: needsMode || (wanted.get(path)?.needsMode ?? false) });
}

function isMove(edit: FileEdit): boolean {
  return edit.kind === "update" && edit.moveTo !== null;
}

async function readState(
  files: PatchFiles,
  path: string,
  { signal, needsMode }: EditOptions & { needsMode: boolean },
): Promise<FileState> {
  try {
    const [bytes, stat] = await Promise.all([
      files.read(path, { maxBytes: MAX_FILE_BYTES, signal }),
      needsMode ? files.stat(path, { followSymlinks: true, signal }) : null,
    ]);
    const decoded = decodeUtf8(bytes);
    if (decoded.kind === "invalid") return { kind: "unreadable", failure: { reason: decoded.reason } };
    return { kind: "text", text: decoded.text, mode: (stat?.mode ?? DEFAULT_MODE) & 0o777, hasTwin: false };
  } catch (error) {
    const failure = failureOf(path, error);
    return failure.errno === "ENOENT" ? missing : { kind: "unreadable", failure };
  }
}

/** Finds names of one file. They have the same text, so only files with the same text need a second look. */
async function markTwins(files: PatchFiles, tree: Tree, options: EditOptions): Promise<void> {
  const byIdentity = new Map<string, TextState[]>();
  await inBatches(sameTexts(tree), async ([path, state]) => {
    const identity = await identityOf(files, path, options);
    const same = byIdentity.get(identity);
    if (same === undefined) byIdentity.set(identity, [state]);
    else same.push(state);
  });
  for (const same of byIdentity.values()) for (const state of same) state.hasTwin = same.length > 1;
}

/** The file behind the name; where that cannot be told, one that may be any other such. */
async function identityOf(files: PatchFiles, path: string, { signal }: EditOptions): Promise<string> {
  try {
    const { dev, ino } = await files.stat(path, { followSymlinks: true, signal });
    return `${dev}:${ino}`;
  } catch (error) {
    if (!isFileError(error)) throw error;
    return "unknown";
  }
}

function sameTexts(tree: Tree): [string, TextState][] {
  const byText = new Map<string, [string, TextState][]>();
  for (const [path, state] of tree) {
    if (state.kind !== "text") continue;
    const same = byText.get(state.text);
    if (same === undefined) byText.set(state.text, [[path, state]]);
    else same.push([path, state]);
  }
  return [...byText.values()].filter((same) => same.length > 1).flat();
}
