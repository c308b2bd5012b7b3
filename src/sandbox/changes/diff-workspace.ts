import type { SecretMask } from "../../egress/secrets/secret-mask.js";
import { isBrigError } from "../../errors.js";
import { Gate } from "../../lib/time/gate.js";
import type { BaseState, FileState, PresentState } from "../tree/tree-state.js";
import type { LiveChanges } from "./live-changes.js";
import { type PathChoice, pathFilter } from "./path-filter.js";
import type { SeenChange } from "./seen-change.js";
import { type PatchSide, unifiedText } from "./unified-text.js";
import type { DiffOptions, FileVersion, WorkspaceChange, WorkspaceDiff } from "./workspace-change.js";

const DEFAULT_MAX_FILE_BYTES = 1024 * 1024;
const DEFAULT_MAX_PATCH_BYTES = 16 * 1024 * 1024;
/** How many patches are made at the same time. More do not make it faster. */
const PATCHES_AT_ONCE = 8;

/** Errors: those of a scan, `usage.invalid` for a path outside the workspace, the signal's reason. */
export async function diffWorkspace(
  source: LiveChanges,
  options: DiffOptions & PathChoice & { mask?: SecretMask | undefined },
): Promise<WorkspaceDiff> {
  const { signal, onChange, patches = true, maxPatchBytes = DEFAULT_MAX_PATCH_BYTES } = options;
  const isWanted = pathFilter(source.workspace, options);
  const gate = new Gate();
  const diff: WorkspaceDiff = { changes: [], count: 0, tooLarge: 0, notEntered: 0 };
  let bytesLeft = patches ? maxPatchBytes : 0;
  const make = async (change: SeenChange): Promise<MadePatch> => {
    if (!patches) return noPatch;
    if (bytesLeft <= 0) return hasPatch(change) ? patchTooLarge : noPatch;
    return await gate.pass(() => makePatch(source, change, options), { width: PATCHES_AT_ONCE, signal });
  };
  const { notEntered } = await source.scan({
    signal,
    async onChanges(changes) {
      const wanted = changes.filter(({ path }) => isWanted(path));
      const made = await Promise.all(wanted.map(make));
      for (const [at, change] of wanted.entries()) {
        const patch = masked(withinLimit(made[at] ?? noPatch, bytesLeft), options.mask);
        bytesLeft -= patch.text === null ? 0 : Buffer.byteLength(patch.text);
        diff.count++;
        if (patch.isTooLarge) diff.tooLarge++;
        const described = describe(change, patch);
        if (onChange === undefined) diff.changes.push(described);
        else await onChange(described);
      }
    },
  });
  return { ...diff, notEntered };
}

interface MadePatch {
  text: string | null;
  isBinary: boolean;
  isTooLarge: boolean;
}

const noPatch: MadePatch = { text: null, isBinary: false, isTooLarge: false };
const patchTooLarge: MadePatch = { ...noPatch, isTooLarge: true };

function withinLimit(patch: MadePatch, bytesLeft: number): MadePatch {
  const isTooLong = patch.text !== null && Buffer.byteLength(patch.text) > bytesLeft;
  return isTooLong ? { ...patch, text: null, isTooLarge: true } : patch;
}

function masked(patch: MadePatch, mask: SecretMask | undefined): MadePatch {
  return mask === undefined || patch.text === null ? patch : { ...patch, text: mask.text(patch.text) };
}

function describe({ path, change, before, now }: SeenChange, { text, isBinary }: MadePatch): WorkspaceChange {
  return {
    path: path.toString("utf8"),
    pathBytes: path,
    change,
    before: before === null ? null : versionOf(before),
    after: now === null ? null : versionOf(now),
    patch: text,
    isBinary,
  };
}

function versionOf({ type, mode, sizeBytes }: FileState): FileVersion {
  return { type, mode, sizeBytes };
}

async function makePatch(
  source: LiveChanges,
  change: SeenChange,
  { signal, maxFileBytes = DEFAULT_MAX_FILE_BYTES }: DiffOptions,
): Promise<MadePatch> {
  if (!hasPatch(change)) return noPatch;
  const { before, now } = change;
  if ([before, now].some((state) => state?.type === "file" && state.sizeBytes > maxFileBytes))
    return patchTooLarge;
  const limit = { maxBytes: maxFileBytes, signal };
  try {
    const [old, current] = await Promise.all([
      inPatches(before) ? source.readHost(change, limit) : null,
      now?.type === "file" ? source.read(change, limit) : (now?.linkTarget ?? null),
    ]);
    return patchOf(change.path.toString("utf8"), sideOf(before, old), sideOf(now, current));
  } catch (error) {
    // The file has grown since the scan.
    if (isBrigError(error, "file.too-large")) return patchTooLarge;
    throw error;
  }
}

function hasPatch({ before, now }: SeenChange): boolean {
  return inPatches(before) || inPatches(now);
}

/** Git records no other kinds of files. */
function inPatches(state: FileState | null): boolean {
  return state?.type === "file" || state?.type === "symlink";
}

function sideOf(state: PresentState | BaseState | null, content: Buffer | null): PatchSide | null {
  if (state === null || content === null) return null;
  if (state.type === "symlink") return { gitMode: "120000", content };
  return { gitMode: state.mode & 0o100 ? "100755" : "100644", content };
}

/** In git's format, a file that has become a symbolic link is one deletion and one addition. */
function patchOf(path: string, before: PatchSide | null, after: PatchSide | null): MadePatch {
  const changesKind =
    before !== null && after !== null && (before.gitMode === "120000") !== (after.gitMode === "120000");
  const parts = changesKind
    ? [unifiedText(path, before, null), unifiedText(path, null, after)]
    : [unifiedText(path, before, after)];
  return {
    text: parts.map(({ text }) => text).join(""),
    isBinary: parts.some(({ kind }) => kind === "binary"),
    isTooLarge: false,
  };
}
