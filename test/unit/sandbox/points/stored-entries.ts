import type { TouchedPath } from "../../../../src/sandbox/changes/workspace-change.js";
import type { TouchedScan } from "../../../../src/sandbox/points/touched-paths.js";
import { ContentStore } from "../../../../src/sandbox/snapshots/content-store.js";
import type { ManifestEntry } from "../../../../src/sandbox/snapshots/manifest.js";
import type { EarlierBase, StoredSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import type { PresentState } from "../../../../src/sandbox/tree/tree-changes.js";
import { baseState } from "../overlay/played-tree.js";
import { contentText } from "../snapshots/content-text.js";
import { newHome } from "./played-points.js";

export const bytes = (path: string) => Buffer.from(path, "latin1");
export const hash = (letter: string) => letter.repeat(64);
export const hostBase = { state: null, unchangedNs: 5n };

export async function storeWith(...contents: string[]) {
  const store = new ContentStore(newHome());
  const ids = [];
  for (const content of contents) ids.push((await store.add(Buffer.from(content))).sha256);
  return { store, ids };
}

export const has = async (store: ContentStore, sha256: string) => await contentText(store.read(sha256));

export const entryOf = (
  path: string,
  now: PresentState | null,
  given: Partial<ManifestEntry> = {},
): ManifestEntry =>
  ({
    change:
      now === null
        ? { path: bytes(path), change: "deleted", now, before: baseState() }
        : { path: bytes(path), change: "added", now, before: null },
    ...{ sha256: null, base: hostBase, baseSha256: null, ...given },
  }) as ManifestEntry;

export const snapshotOf = (
  entries: readonly ManifestEntry[],
  contents: ContentStore,
  bases: readonly EarlierBase[] = [],
) =>
  ({
    ...{ contents, bases },
    entries: async function* () {
      yield* entries;
    },
  }) as unknown as StoredSnapshot;

export const baseAt = (path: string, given: Partial<EarlierBase> = {}): EarlierBase => ({
  ...{ path: bytes(path), state: null, baseSha256: null, hostBase, owner: null },
  ...given,
});

export const scanOf = (...touched: TouchedPath[]): TouchedScan => ({
  ...{ startedNs: 1n, recent: [], vanished: [] },
  all: new Map(touched.map((one) => [one.path.toString("latin1"), one])),
});
