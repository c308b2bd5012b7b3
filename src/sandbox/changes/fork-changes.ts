import { BrigError } from "../../errors.js";
import type { WorkspaceTree } from "../overlay/workspace-tree.js";
import type { PresentState } from "../tree/tree-changes.js";
import { Changing, commitInto } from "./commit.js";
import { changesSinceFork, type Fork, isSameState, type StateOf, stateAtFork, statesOf } from "./fork.js";
import type { LiveChanges } from "./live-changes.js";
import { type PatchSide, unifiedText } from "./patch.js";
import {
  type ForkApplied,
  type ForkChange,
  type ForkDiff,
  type ForkPathOptions,
  keyOf,
  type SeenChange,
} from "./workspace-change.js";

/** The longest patch of all changes, and the largest file in it. */
const MAX_TEXT_BYTES = 1024 * 1024;

export async function diffFork(fork: Fork, options: ForkPathOptions): Promise<ForkDiff> {
  const since = await changesSinceFork(fork, options);
  const atFork = stateAtFork(fork.point);
  let text = "";
  for (const change of since) {
    if (text.length > MAX_TEXT_BYTES) break;
    text += await patchOf(fork, change, { atFork, signal: options.signal });
  }
  return { files: since.map((change) => asChange(atFork, change)), text };
}

/**
 * Makes the fork's changes in the parent's workspace: all of them, or none if the parent has changed one of
 * the paths too.
 */
export async function applyFork(
  fork: Fork,
  parent: { tree: WorkspaceTree; changes: LiveChanges },
  options: ForkPathOptions,
): Promise<ForkApplied> {
  const { signal } = options;
  const since = await changesSinceFork(fork, options);
  const { current, scannedNs } = await currentStates(parent.changes, signal);
  const atFork = stateAtFork(fork.point);
  const conflicts = since
    .filter(({ path }) => !isSameState(current(path), atFork(path)))
    .map(({ path }) => ({
      path: path.toString("utf8"),
      reason: "it was changed in the workspace since the fork",
    }));
  if (conflicts.length > 0) return { kind: "conflicts", conflicts };
  const changing = new Changing();
  for (const change of since) {
    const { path, now, before } = change;
    const state = current(path);
    const there = state === undefined ? before : state;
    const notSinceNs = there?.type === "directory" ? fork.point.parentNs : scannedNs;
    const expects = there == null ? "absent" : { type: there.type, notSinceNs };
    const content = () => fork.changes.content(change, signal);
    changing.add(path, now, { expects, content, isExact: true });
  }
  const files = since.map((change) => asChange(atFork, change));
  const found = await commitInto(parent.tree, changing, { signal });
  return found.length > 0 ? { kind: "conflicts", conflicts: found } : { kind: "applied", files };
}

async function currentStates(changes: LiveChanges, signal: AbortSignal | undefined) {
  const current = new Map<string, PresentState | null>();
  await changes.scan({
    signal,
    onChanges(some) {
      for (const { path, now } of some) current.set(keyOf(path), now);
    },
  });
  return { current: statesOf(current), scannedNs: changes.scannedNs };
}

function asChange(atFork: StateOf, { path, before, now }: SeenChange): ForkChange {
  const then = atFork(path);
  const wasThere = then === undefined ? before !== null : then !== null;
  const kind = now === null ? "delete" : wasThere ? "update" : "add";
  return { path: path.toString("utf8"), kind };
}

/**
 * The patch between the parent's state when the fork was made, and the fork's. Empty if there can be none.
 */
async function patchOf(
  fork: Fork,
  change: SeenChange,
  { atFork, signal }: { atFork: StateOf; signal: AbortSignal | undefined },
): Promise<string> {
  const { path, now, before } = change;
  const { parentChanges } = fork.point;
  const state = atFork(path);
  const then = state === undefined ? before : state;
  const limit = { maxBytes: MAX_TEXT_BYTES, signal };
  if ([now, then].some((state) => state?.type === "file" && state.sizeBytes > MAX_TEXT_BYTES)) return "";
  const side = async (
    state: typeof then | typeof now,
    read: () => Promise<Buffer>,
  ): Promise<PatchSide | null> => {
    if (state?.type !== "file") return null;
    return { gitMode: state.mode & 0o100 ? "100755" : "100644", content: await read() };
  };
  try {
    const [old, current] = await Promise.all([
      side(then, () => parentChanges.read(change, limit)),
      side(now, () => fork.changes.read(change, limit)),
    ]);
    if (old === null && current === null) return "";
    return unifiedText({ path, before: old, after: current }, { binary: "named" }).text;
  } catch (error) {
    // The file was replaced or removed meanwhile.
    if (error instanceof BrigError && error.code.startsWith("file.")) return "";
    throw error;
  }
}
