import { posix } from "node:path";
import { decodeUtf8 } from "../../lib/utf8.js";
import type { FileEdit } from "./file-edit.js";
import {
  type EditFailure,
  failedTo,
  failureOf,
  isMissing,
  MAX_FILE_BYTES,
  type PatchFiles,
  type PatchWrite,
} from "./patch-files.js";
import { type EditOptions, planEdits, type Step } from "./plan-edits.js";

/** What a patch did, or is about to do, to one file. */
export interface PatchChange {
  kind: "add" | "update" | "delete";
  /** The file's name as written; of a moved file the new one. */
  name: string;
  /** Absolute; of a moved file the new one. */
  path: string;
  /** The absolute old name of a moved file. */
  movedFrom: string | null;
}

/** What became of the edits. */
export type PatchResult =
  | { kind: "applied"; changes: PatchChange[] }
  /** They do not fit the files. Nothing was changed. */
  | ({ kind: "refused" } & EditFailure)
  /** A change failed. Those before it stay, those after it were not made. */
  | ({ kind: "failed"; changes: PatchChange[] } & EditFailure);

export interface ApplyOptions extends EditOptions {
  /** Called once it is sure that the edits fit, before the first of them. */
  onStart?: ((changes: readonly PatchChange[]) => void) | undefined;
  /** Called after the last edit that was made, if `onStart` was; also when an abort or a lost sandbox ends the work. */
  onEnd?: ((changes: readonly PatchChange[], success: boolean) => void) | undefined;
}

/** Makes the edits in order, after checking that all of them fit. Aborting stops between two changes of a file. */
export async function applyEdits(
  files: PatchFiles,
  edits: readonly FileEdit[],
  options: ApplyOptions = {},
): Promise<PatchResult> {
  const plan = await planEdits(files, edits, options);
  if (plan.kind === "refused") return plan;
  options.onStart?.(edits.map(changeOf));
  const changes: PatchChange[] = [];
  try {
    return await makeEdits(edits, { files, signal: options.signal, steps: plan.steps, changes });
  } finally {
    options.onEnd?.(changes, changes.length === edits.length);
  }
}

type Work = EditOptions & { files: PatchFiles; steps: Step[][]; changes: PatchChange[] };

/** Adds to `changes` what is done. */
async function makeEdits(edits: readonly FileEdit[], work: Work): Promise<PatchResult> {
  const { files, steps, changes, signal } = work;
  const keep = (count: number) =>
    changes.push(...edits.slice(changes.length, changes.length + count).map(changeOf));
  const failed = ({ reason, errno }: EditFailure) => ({ kind: "failed", reason, errno, changes }) as const;
  // After a write for which there is no directory the next is tried alone: what is sent behind such a one is sent in vain.
  let most = Number.POSITIVE_INFINITY;
  while (changes.length < edits.length) {
    const rest = steps.slice(changes.length);
    const writes = plainWrites(rest).slice(0, most);
    if (writes.length === 0) {
      const undone = await takeSteps(rest[0] ?? [], work);
      if (undone !== null) return failed(undone);
      keep(1);
      continue;
    }
    const { written, failure } = await files.writeEach(writes, { signal });
    keep(written);
    const missed = writes[written];
    most = missed === undefined ? most * 2 : 1;
    if (missed === undefined) continue;
    const unwritten = isMissing(failure)
      ? await writeInNewDirectory(files, missed, { signal })
      : writeFailure(missed.path, failure);
    if (unwritten !== null) return failed(unwritten);
    keep(1);
  }
  return { kind: "applied", changes };
}

type Write = Extract<Step, { kind: "write" }>;

/** The edits from the first on that do nothing but write a file: these need not wait for each other's answers. */
function plainWrites(steps: readonly Step[][]): PatchWrite[] {
  const isPlain = ([step, ...more]: Step[]) => step?.kind === "write" && more.length === 0;
  const end = steps.findIndex((ofEdit) => !isPlain(ofEdit));
  return steps
    .slice(0, end < 0 ? steps.length : end)
    .flat()
    .filter((step): step is Write => step.kind === "write")
    .map(writeOf);
}

function writeOf({ path, text, mode }: Omit<Write, "kind">): PatchWrite {
  return { path, data: text, mode };
}

/** Null when all are done, else why one is not. */
async function takeSteps(steps: readonly Step[], { files, signal }: Work): Promise<EditFailure | null> {
  for (const step of steps) {
    signal?.throwIfAborted();
    const failure = await perform(files, step, { signal });
    if (failure !== null) return failure;
  }
  return null;
}

export function changeOf(edit: FileEdit): PatchChange {
  const moveTo = edit.kind === "update" ? edit.moveTo : null;
  const { written, path } = moveTo ?? edit.file;
  const movedFrom = moveTo === null || moveTo.path === edit.file.path ? null : edit.file.path;
  return { kind: edit.kind, name: written, path, movedFrom };
}

/** Null when it is done, else why it is not. */
async function perform(files: PatchFiles, step: Step, options: EditOptions): Promise<EditFailure | null> {
  switch (step.kind) {
    case "write":
      return await write(files, writeOf(step), options);
    case "rewrite": {
      const edited = await editedNow(files, step, options);
      return "text" in edited ? await write(files, writeOf({ ...step, text: edited.text }), options) : edited;
    }
    case "delete":
      return await attempt(`delete file ${step.path}`, step.path, () => files.remove(step.path, options));
    case "remove-original":
      return await attempt(`remove original ${step.path}`, step.path, async () => {
        if (!(await isSameFile(files, step, options))) await files.remove(step.path, options);
      });
  }
}

async function write(files: PatchFiles, file: PatchWrite, options: EditOptions): Promise<EditFailure | null> {
  const { failure } = await files.writeEach([file], options);
  if (failure === null) return null;
  return isMissing(failure)
    ? await writeInNewDirectory(files, file, options)
    : writeFailure(file.path, failure);
}

async function writeInNewDirectory(
  files: PatchFiles,
  file: PatchWrite,
  options: EditOptions,
): Promise<EditFailure | null> {
  const directory = posix.dirname(file.path);
  const noDirectory = await attempt(`create parent directories for ${file.path}`, directory, () =>
    files.mkdir(directory, { ...options, recursive: true }),
  );
  if (noDirectory !== null) return noDirectory;
  const { failure } = await files.writeEach([file], options);
  return failure === null ? null : writeFailure(file.path, failure);
}

/** A failure that is not the file's, an abort for one, is thrown on. */
function writeFailure(path: string, failure: unknown): EditFailure {
  return failedTo(`write file ${path}`, failureOf(path, failure));
}

async function editedNow(
  files: PatchFiles,
  { from, edit }: Extract<Step, { kind: "rewrite" }>,
  { signal }: EditOptions,
): Promise<{ text: string } | EditFailure> {
  const failed = (failure: EditFailure) => failedTo(`read file to update ${from}`, failure);
  try {
    const decoded = decodeUtf8(await files.read(from, { maxBytes: MAX_FILE_BYTES, signal }));
    return decoded.kind === "invalid" ? failed(decoded) : edit(decoded.text, from);
  } catch (error) {
    return failed(failureOf(from, error));
  }
}

/** Whether the old name is what the new one, perhaps through a link, leads to: to remove it would lose the file. */
async function isSameFile(
  files: PatchFiles,
  { path, movedTo }: { path: string; movedTo: string },
  { signal }: EditOptions,
): Promise<boolean> {
  const [original, moved] = await Promise.all([
    files.stat(path, { followSymlinks: false, signal }),
    files.stat(movedTo, { followSymlinks: true, signal }),
  ]);
  return original.dev === moved.dev && original.ino === moved.ino;
}

async function attempt(edit: string, path: string, action: () => Promise<void>): Promise<EditFailure | null> {
  try {
    await action();
    return null;
  } catch (error) {
    return failedTo(edit, failureOf(path, error));
  }
}
