import { posix } from "node:path";
import { decodeUtf8 } from "./decode-utf8.js";
import type { FileEdit } from "./file-edit.js";
import { failureText, isMissing, MAX_FILE_BYTES, type PatchFiles } from "./patch-files.js";
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
  | { kind: "refused"; reason: string }
  /** A change failed. Those before it stay, those after it were not made. */
  | { kind: "failed"; reason: string; changes: PatchChange[] };

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
    return await makeEdits(files, edits, { signal: options.signal, steps: plan.steps, changes });
  } finally {
    options.onEnd?.(changes, changes.length === edits.length);
  }
}

/** Adds to `changes` what is done. */
async function makeEdits(
  files: PatchFiles,
  edits: readonly FileEdit[],
  { steps, changes, ...options }: EditOptions & { steps: Step[][]; changes: PatchChange[] },
): Promise<PatchResult> {
  for (const [number, edit] of edits.entries()) {
    for (const step of steps[number] ?? []) {
      options.signal?.throwIfAborted();
      const reason = await perform(files, step, options);
      if (reason !== null) return { kind: "failed", reason, changes };
    }
    changes.push(changeOf(edit));
  }
  return { kind: "applied", changes };
}

function changeOf(edit: FileEdit): PatchChange {
  const moveTo = edit.kind === "update" ? edit.moveTo : null;
  const { written, path } = moveTo ?? edit.file;
  const movedFrom = moveTo === null || moveTo.path === edit.file.path ? null : edit.file.path;
  return { kind: edit.kind, name: written, path, movedFrom };
}

/** Null when it is done, else why it is not. */
async function perform(files: PatchFiles, step: Step, options: EditOptions): Promise<string | null> {
  switch (step.kind) {
    case "write":
      return await write(files, step, options);
    case "rewrite": {
      const text = await editedNow(files, step, options);
      return text.kind === "mismatch"
        ? text.reason
        : await write(files, { ...step, text: text.text }, options);
    }
    case "delete":
      return await attempt(`Failed to delete file ${step.path}`, step.path, () =>
        files.remove(step.path, options),
      );
    case "remove-original":
      return await attempt(`Failed to remove original ${step.path}`, step.path, async () => {
        if (!(await isSameFile(files, step, options))) await files.remove(step.path, options);
      });
  }
}

async function write(
  files: PatchFiles,
  { path, text, mode }: { path: string; text: string; mode: number },
  options: EditOptions,
): Promise<string | null> {
  const writeIt = () => files.write(path, text, { ...options, mode });
  const failed = `Failed to write file ${path}`;
  try {
    await writeIt();
    return null;
  } catch (error) {
    if (!isMissing(error)) return `${failed}: ${failureText(path, error)}`;
  }
  const directory = posix.dirname(path);
  const noDirectory = await attempt(`Failed to create parent directories for ${path}`, directory, () =>
    files.mkdir(directory, { ...options, recursive: true }),
  );
  return noDirectory ?? (await attempt(failed, path, writeIt));
}

async function editedNow(
  files: PatchFiles,
  { from, edit }: Extract<Step, { kind: "rewrite" }>,
  { signal }: EditOptions,
) {
  const failed = (reason: string) =>
    ({ kind: "mismatch", reason: `Failed to read file to update ${from}: ${reason}` }) as const;
  try {
    const decoded = decodeUtf8(await files.read(from, { maxBytes: MAX_FILE_BYTES, signal }));
    return decoded.kind === "invalid" ? failed(decoded.reason) : edit(decoded.text, from);
  } catch (error) {
    return failed(failureText(from, error));
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

async function attempt(failed: string, path: string, action: () => Promise<void>): Promise<string | null> {
  try {
    await action();
    return null;
  } catch (error) {
    return `${failed}: ${failureText(path, error)}`;
  }
}
