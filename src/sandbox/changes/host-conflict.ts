import type { BaseState } from "../tree/tree-changes.js";
import type { HostBase, SeenChange } from "./workspace-change.js";

/**
 * Concludes what the host had at a path when the sandbox changed it, from what the host has there (`before`)
 * when the change is first seen. If the host changed it after `unchangedNs`, it is unknown which of the two
 * changes came first.
 */
export function baseOf(before: BaseState | null, unchangedNs: bigint): HostBase {
  const isUnknown = before !== null && before.type !== "directory" && before.changedNs > unchangedNs;
  return { state: isUnknown ? "unknown" : before, unchangedNs };
}

/**
 * Says why a change must not be made on the host: the host now has something else at the path than what the
 * sandbox has changed. Returns null if it is the same. Does not check what is below a deleted directory.
 */
export function hostConflict({ base: { state: base }, before, now }: SeenChange): string | null {
  if (base === "unknown") return changed;
  const areDirectories = before?.type === "directory" && now?.type === "directory";
  if (base === null) return before === null || areDirectories ? null : "it was created on the host meanwhile";
  if (before === null) return "it was deleted on the host meanwhile";
  if (base.type !== before.type) return `it has become a ${before.type} on the host meanwhile`;
  // A change inside a directory is a change of another path.
  if (base.type === "directory") return base.mode === before.mode ? null : changed;
  return isSameState(base, before) ? null : changed;
}

function isSameState(one: BaseState, other: BaseState): boolean {
  return (
    one.type === other.type &&
    one.ino === other.ino &&
    one.dev === other.dev &&
    one.sizeBytes === other.sizeBytes &&
    one.modifiedNs === other.modifiedNs &&
    one.changedNs === other.changedNs
  );
}

/** Whether the sandbox's version was made from the same version of the host's. */
export function isSameBase({ state: one }: HostBase, { state: other }: HostBase): boolean {
  if (one === null || other === null || one === "unknown" || other === "unknown") return one === other;
  return isSameState(one, other);
}

const changed = "it was changed on the host meanwhile";
