import type { SecretMask } from "../egress/secrets/secret-mask.js";
import type { FileState } from "../tree/tree-changes.js";
import type { LiveChanges } from "./live-changes.js";
import { hasPatch, type MadePatch, patchOf } from "./patch.js";
import {
  type DiffOptions,
  type FileVersion,
  type PathChoice,
  pathFilter,
  type SeenChange,
  type WorkspaceChange,
  type WorkspaceDiff,
} from "./workspace-change.js";

const DEFAULT_MAX_FILE_BYTES = 1024 * 1024;
const DEFAULT_MAX_PATCH_BYTES = 16 * 1024 * 1024;
/** The number of patches that are made at the same time. More do not make it faster. */
const PATCHES_AT_ONCE = 8;

/** Errors: those of a scan, `usage.invalid` for a path outside the workspace, the signal's reason. */
export async function diffWorkspace(
  source: LiveChanges,
  options: DiffOptions & PathChoice & { mask?: SecretMask | undefined },
): Promise<WorkspaceDiff> {
  const { signal, onChange, patches = true, maxPatchBytes = DEFAULT_MAX_PATCH_BYTES, mask } = options;
  const { maxFileBytes = DEFAULT_MAX_FILE_BYTES } = options;
  const isWanted = pathFilter(source.workspace, options);
  const diff: WorkspaceDiff = { changes: [], count: 0, tooLarge: 0, notEntered: 0 };
  let leftBytes = patches ? maxPatchBytes : 0;
  const make = async (change: SeenChange): Promise<MadePatch> => {
    if (!patches || !hasPatch(change)) return { kind: "none", isBinary: false };
    if (leftBytes <= 0) return { kind: "too-large" };
    return await patchOf(source, change, { maxFileBytes, maxBytes: leftBytes, mask, signal });
  };
  const take = async (change: SeenChange, made: MadePatch) => {
    if (made.kind === "gone") return;
    const patch = made.kind === "patch" ? fitting(made, leftBytes) : made;
    if (patch.kind === "patch") leftBytes -= Buffer.byteLength(patch.text);
    diff.count++;
    if (patch.kind === "too-large") diff.tooLarge++;
    const described = describe(change, patch);
    if (onChange === undefined) diff.changes.push(described);
    else await onChange(described);
  };
  const { notEntered } = await source.scan({
    signal,
    async onChanges(changes) {
      const wanted = changes.filter(({ path }) => isWanted(path));
      for (let at = 0; at < wanted.length; at += PATCHES_AT_ONCE) {
        const some = wanted.slice(at, at + PATCHES_AT_ONCE);
        const made = await Promise.all(some.map(make));
        for (const [index, change] of some.entries()) {
          const patch = made[index];
          if (patch !== undefined) await take(change, patch);
        }
      }
    },
  });
  return { ...diff, notEntered };
}

/** Patches that were made at the same time may together be too long. */
function fitting(patch: MadePatch & { kind: "patch" }, leftBytes: number): MadePatch {
  return Buffer.byteLength(patch.text) > leftBytes ? { kind: "too-large" } : patch;
}

function describe({ path, change, before, now }: SeenChange, patch: MadePatch): WorkspaceChange {
  return {
    path: path.toString("utf8"),
    pathBytes: path,
    change,
    before: before === null ? null : versionOf(before),
    after: now === null ? null : versionOf(now),
    patch: patch.kind === "patch" ? patch.text : null,
    isBinary: (patch.kind === "patch" || patch.kind === "none") && patch.isBinary,
  };
}

function versionOf({ type, mode, sizeBytes }: FileState): FileVersion {
  return { type, mode, sizeBytes };
}
