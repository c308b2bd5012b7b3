import { Gate } from "../../../lib/time/gate.js";
import { FILES_AT_ONCE } from "../../changes/commit/stage-contents.js";
import type { NewFork } from "../../changes/fork/make-fork.js";
import { keyOf } from "../../changes/path-key.js";
import type { SeenChange } from "../../changes/seen-change.js";
import { fileContent } from "../../files/file-content.js";
import { isGone } from "../../files/file-request.js";
import { below, FROM_PATH, type WorkspaceTree } from "../../overlay/workspace-tree.js";
import type { ManifestEntry } from "../../snapshots/manifest.js";
import { statIn } from "../wanted-base.js";
import type { StartRequest, StartState } from "./start-state.js";

/**
 * The state that a fork was made with. What the first call has changed is read from the workspace that was forked,
 * if it is still the same there; otherwise that content is lost, and a state that needs it cannot be made again.
 */
export function startOfFork(tree: WorkspaceTree, fork: NewFork): StartState {
  return async (request) => {
    const gate = new Gate();
    const { signal } = request;
    const read = async (seen: SeenChange): Promise<ManifestEntry> => {
      const { base, ...change } = seen;
      const isFile = change.now?.type === "file";
      const sha256 = isFile ? await storeContent(seen, { ...request, tree, fork }) : null;
      return { change, sha256, base, baseSha256: null };
    };
    const entries = [...fork.entries.values()].map((seen) =>
      gate.pass(() => read(seen), { width: FILES_AT_ONCE, signal }),
    );
    // After a failure nothing may be written any more to what is removed then.
    await Promise.allSettled(entries);
    return await Promise.all(entries);
  };
}

async function storeContent(
  seen: SeenChange,
  { scan, changes, contents, signal, tree, fork }: StartRequest & { tree: WorkspaceTree; fork: NewFork },
): Promise<string | null> {
  const { path, now } = seen;
  const [there, own] = [scan.all.get(keyOf(path))?.now, fork.own.get(keyOf(path))];
  const isOwn = there != null && there.ino === own?.ino && there.changedNs === own.changedNs;
  try {
    if (isOwn) {
      const content = await changes.content(seen, signal);
      return (await contents.add(content)).sha256;
    }
    const parents = await statIn(FROM_PATH, path, { tree, signal });
    if (now === null || parents === null) return null;
    const isSame = parents.ino === now.ino && parents.modifiedMs === Number(now.modifiedNs) / 1e6;
    if (!isSame || parents.sizeBytes !== now.sizeBytes) return null;
    const options = { lengthBytes: now.sizeBytes, signal };
    return (await contents.add(fileContent(await tree.keeper(), below(FROM_PATH, path), options))).sha256;
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}
