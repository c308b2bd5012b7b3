import { BrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { someAtOnce } from "../../lib/time/gate.js";
import { type Content, isGone } from "../files/file-request.js";
import type { OpenedSandbox } from "../open-sandbox.js";
import type { WorkspaceTree } from "../overlay/workspace-tree.js";
import type { ManifestEntry } from "../snapshots/manifest.js";
import {
  createSnapshot,
  type SnapshotWriter,
  type StoredSnapshot,
  storing,
} from "../snapshots/snapshot-store.js";
import { occupiedBytes } from "../tree/tree-changes.js";
import { FILES_AT_ONCE } from "./commit.js";
import { CopyCount, type OnCopied } from "./copied-changes.js";
import { LiveChanges } from "./live-changes.js";
import { isOfRepository, type SeenChange } from "./workspace-change.js";

export const DEFAULT_MAX_BYTES = 10 * 1024 ** 3;

export interface SnapshotRequest {
  brigHome: string;
  id: string;
  createdAt: Date;
  /** The most bytes that the changed files may have together. Default: 10 GiB. */
  maxBytes?: number | undefined;
  signal?: AbortSignal | undefined;
  onCopied?: OnCopied | undefined;
}

interface StoredCounts {
  /** The number of paths that were stored. */
  count: number;
  /** The number of stored paths that belong to the workspace's repository. */
  repositoryCount: number;
}

/**
 * Stores every change, and the content of every changed file. If commands run meanwhile, the files may be
 * from different moments. Errors: `file.too-large` for changes beyond the limit, `snapshot.failed`, those of
 * a scan. A failure leaves nothing behind.
 */
export async function takeSnapshot(
  source: LiveChanges,
  request: SnapshotRequest,
): Promise<{ snapshot: StoredSnapshot } & StoredCounts> {
  const { brigHome, id, createdAt } = request;
  const head = { version: 1, id, workspace: source.workspace, createdAt: createdAt.toISOString() } as const;
  return await storing(brigHome, async () => {
    await using writer = await createSnapshot(brigHome, head);
    const counts = await storeChanges(source, { ...request, writer });
    return { snapshot: await writer.finish(), ...counts };
  });
}

async function storeChanges(
  source: LiveChanges,
  {
    writer,
    signal,
    maxBytes = DEFAULT_MAX_BYTES,
    onCopied,
  }: Pick<SnapshotRequest, "signal" | "maxBytes" | "onCopied"> & { writer: SnapshotWriter },
): Promise<StoredCounts> {
  const scanned: (readonly SeenChange[])[] = [];
  let bytes = 0;
  await source.scan({
    signal,
    onChanges(changes) {
      bytes += changes.reduce((sum, { now }) => sum + occupiedBytes(now), 0);
      if (bytes > maxBytes) throw tooLarge(changes, maxBytes);
      scanned.push(changes);
    },
  });
  const copied = new CopyCount(onCopied);
  copied.expect(sizesOfFiles(scanned.flat()));
  const store = (change: SeenChange) => storeContent(change, { source, writer, copied, signal });
  let [count, repositoryCount] = [0, 0];
  for (const changes of scanned)
    for (const entry of await someAtOnce(changes, store, { width: FILES_AT_ONCE, signal })) {
      if (entry === null) continue;
      await writer.add(entry);
      count++;
      if (isOfRepository(entry.change.path)) repositoryCount++;
    }
  return { count, repositoryCount };
}

/** How much has to be copied of each file among the changes. */
export function sizesOfFiles(changes: readonly Pick<SeenChange, "now">[]): number[] {
  return changes.flatMap(({ now }) => (now?.type === "file" ? [occupiedBytes(now)] : []));
}

interface Storing {
  source: LiveChanges;
  writer: SnapshotWriter;
  copied: CopyCount;
  signal: AbortSignal | undefined;
}

/** Returns null if the file was removed or replaced after the scan. */
async function storeContent(
  { base, ...change }: SeenChange,
  { source, writer, copied, signal }: Storing,
): Promise<ManifestEntry | null> {
  if (change.now?.type !== "file") return { change, sha256: null, base };
  const seen = { base, ...change };
  try {
    const content = await source.content(seen, signal);
    const add = async (counted: Content) => await writer.contents.add(counted);
    const { sha256 } = await copied.file(occupiedBytes(change.now), content, add);
    return { change, sha256, base };
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

export function tooLarge(changes: readonly SeenChange[], maxBytes: number): BrigError {
  const files = changes.filter(({ now }) => now?.type === "file");
  const largest = files.reduce<SeenChange | undefined>(
    (one, other) => (one && occupiedBytes(one.now) >= occupiedBytes(other.now) ? one : other),
    undefined,
  );
  const example =
    largest?.now == null
      ? ""
      : `; one of them is ${JSON.stringify(largest.path.toString())} with ${formatBytes(occupiedBytes(largest.now))}`;
  return new BrigError(
    `the files that were changed in the workspace have more than ${formatBytes(maxBytes)}${example}`,
    { code: "file.too-large", hint: "remove large files that need not be kept" },
  );
}

export type Opened = Pick<
  OpenedSandbox,
  "tree" | "branch" | "settings" | "options" | "engine" | "plan" | "warn" | "hasRun"
>;

/** Sandboxes that share a workspace share what is remembered of the host. */
const changesOfTree = new WeakMap<WorkspaceTree, LiveChanges>();

export function changesOf(tree: WorkspaceTree): LiveChanges {
  const known = changesOfTree.get(tree);
  if (known !== undefined) return known;
  const changes = new LiveChanges(tree);
  changesOfTree.set(tree, changes);
  return changes;
}

/** Error: `workspace.invalid` for a sandbox whose workspace is of another kind. */
export function requireTree({ tree }: Pick<Opened, "tree">, method: string): WorkspaceTree {
  if (tree !== null) return tree;
  throw new BrigError(`sandbox.${method} works with a copy-on-write workspace only`, {
    code: "workspace.invalid",
    hint: 'create the sandbox with workspaceKind: "overlay", on the command line with --workspace overlay',
  });
}
