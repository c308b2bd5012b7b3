import { isBrigError } from "../../errors.js";
import { fileContent, readFile } from "../files/file-reads.js";
import type { Content } from "../files/file-request.js";
import { listDirectory, readLink, statFile } from "../files/files.js";
import { BASE_PATH, below, MERGED_PATH, UPPER_PATH, type WorkspaceTree } from "../overlay/workspace-tree.js";
import {
  type BaseState,
  type PresentState,
  scanChanges,
  type TreeChange,
  type TreeScan,
} from "../tree/tree-changes.js";
import { SHORT_BYTES } from "./commit.js";
import { baseOf } from "./host-conflict.js";
import {
  type HostBase,
  keyOf,
  type ReadLimit,
  relativeTo,
  type ScanOptions,
  type SeenChange,
  type TouchedPath,
} from "./workspace-change.js";

/**
 * The changes of a running sandbox. When a change of a path is first seen, this remembers what the host had
 * there: the base of the sandbox's version.
 */
export class LiveChanges {
  readonly #tree: WorkspaceTree;
  /** The bases by path (its bytes as latin1). */
  readonly #bases = new Map<string, HostBase>();
  /** The time at which the last complete scan began. Everything that the scan did not report was still unchanged then. */
  #scannedNs: bigint;

  constructor(tree: WorkspaceTree) {
    this.#tree = tree;
    this.#scannedNs = tree.startedAt;
  }

  get workspace(): string {
    return this.#tree.workspace;
  }

  /** The time at which the last complete scan began, by the engine's clock. */
  get scannedNs(): bigint {
    return this.#scannedNs;
  }

  async scan({ signal, onChanges }: ScanOptions): Promise<Omit<TreeScan, "leftOut">> {
    const { notEntered, startedNs } = await scanChanges(await this.#tree.keeper(), {
      ...this.#roots,
      signal,
      onChanges: (changes) => onChanges(changes.filter(isDifferent).map((change) => this.#seen(change))),
    });
    this.#scannedNs = startedNs;
    return { notEntered, startedNs };
  }

  /**
   * Works like `scan`, but also reports files that were touched and are as the host's, and with `since` only what has
   * changed since then. The caller can tell by `leftOut` whether it knows all changes: if it does, it calls `sawAll`.
   */
  async scanTouched({
    since,
    signal,
    onChanges,
  }: {
    since: bigint | undefined;
    signal: AbortSignal | undefined;
    onChanges(changes: readonly TouchedPath[]): unknown;
  }): Promise<TreeScan> {
    return await scanChanges(await this.#tree.keeper(), {
      ...this.#roots,
      since,
      listSame: true,
      signal,
      onChanges: (changes) =>
        onChanges(changes.map((change) => (isDifferent(change) ? this.#seen(change) : change))),
    });
  }

  /** A scan that began then has seen all changes before it. */
  sawAll({ startedNs }: Pick<TreeScan, "startedNs">): void {
    this.#scannedNs = startedNs;
  }

  async read(change: SeenChange, { maxBytes, signal }: ReadLimit): Promise<Buffer> {
    const path = below(MERGED_PATH, change.path);
    return await readFile(await this.#tree.keeper(), path, { maxBytes, signal, refuseSymlinks: true });
  }

  /** The content of a changed file, cut to the size that the file had when it was scanned. */
  async content({ path, now }: SeenChange, signal: AbortSignal | undefined): Promise<Content> {
    const lengthBytes = now?.sizeBytes ?? 0;
    const [keeper, file] = [await this.#tree.keeper(), below(MERGED_PATH, path)];
    if (lengthBytes > SHORT_BYTES) return fileContent(keeper, file, { lengthBytes, signal });
    return await readFile(keeper, file, { lengthBytes, signal, refuseSymlinks: true });
  }

  /** The names in a directory, byte for byte as Latin-1; none if there is no directory. Errors: `file.*`. */
  async namesAt(
    path: Buffer,
    { in: side, signal }: { in: "sandbox" | "host"; signal: AbortSignal | undefined },
  ): Promise<string[]> {
    const directory = below(side === "sandbox" ? MERGED_PATH : BASE_PATH, path);
    try {
      const entries = await listDirectory(await this.#tree.keeper(), directory, { signal });
      return entries.map(({ nameBytes }) => Buffer.from(nameBytes).toString("latin1"));
    } catch (error) {
      if (isBrigError(error, "file.not-found") || isBrigError(error, "file.not-directory")) return [];
      throw error;
    }
  }

  /**
   * The host's files and symbolic links below a directory, at any depth, in the order of their paths. Errors: those of
   * a scan.
   */
  async hostFilesBelow(directory: Buffer, signal: AbortSignal | undefined): Promise<HostFile[]> {
    const found: HostFile[] = [];
    const path = below(BASE_PATH, directory);
    await scanChanges(await this.#tree.keeper(), {
      // Every file below `path` is reported, as another one or as the same, whatever the base directory has.
      base: UPPER_PATH,
      listSame: true,
      merged: path,
      upper: path,
      leftOut: this.#tree.leftOut.flatMap((name) => relativeTo(directory, Buffer.from(name)) ?? []),
      signal,
      onChanges(changes) {
        for (const { path: inside, now } of changes)
          if (now?.type === "file" || now?.type === "symlink")
            found.push({ path: Buffer.concat([directory, Buffer.from("/"), inside]), state: now });
      },
    });
    return found;
  }

  /**
   * Whether the host has nothing in a directory but files, symbolic links and directories with such in them: git knows
   * nothing else. Errors: `file.*`.
   */
  async hasOnlyFiles(directory: Buffer, signal: AbortSignal | undefined): Promise<boolean> {
    const path = below(BASE_PATH, directory);
    const entries = await listDirectory(await this.#tree.keeper(), path, { signal });
    for (const { type, nameBytes } of entries) {
      const inside = Buffer.concat([directory, Buffer.from("/"), nameBytes]);
      const isKnown =
        type === "directory"
          ? await this.hasOnlyFiles(inside, signal)
          : type === "file" || type === "symlink";
      if (!isKnown) return false;
    }
    return entries.length > 0;
  }

  /** The content of one of the host's files. Errors: `file.*`. */
  async readHostFile(path: Buffer, { maxBytes, signal }: ReadLimit): Promise<Buffer> {
    const file = below(BASE_PATH, path);
    return await readFile(await this.#tree.keeper(), file, { maxBytes, signal, refuseSymlinks: true });
  }

  /** The paths of the directories in a directory. Errors: `file.*`. */
  async subdirectories(path: Buffer, signal: AbortSignal | undefined): Promise<Buffer[]> {
    const entries = await listDirectory(await this.#tree.keeper(), below(MERGED_PATH, path), { signal });
    return entries
      .filter(({ type }) => type === "directory")
      .map(({ nameBytes }) => Buffer.concat([path, Buffer.from("/"), nameBytes]));
  }

  /** The state of a directory that no scan has reported. Errors: `file.*`. */
  async directoryState(path: Buffer, signal: AbortSignal | undefined): Promise<PresentState> {
    const stat = await statFile(await this.#tree.keeper(), below(MERGED_PATH, path), {
      followSymlinks: false,
      refuseSymlinks: true,
      signal,
    });
    const { type, mode, uid, gid, sizeBytes, ino } = stat;
    const modifiedNs = BigInt(Math.trunc(stat.modifiedMs * 1e6));
    const times = { modifiedNs, changedNs: modifiedNs };
    return { type, mode, uid, gid, sizeBytes, ino, ...times, links: 1, rdev: 0n, linkTarget: null };
  }

  async readHost(change: SeenChange, { maxBytes, signal }: ReadLimit): Promise<Buffer> {
    if (change.before?.type === "symlink")
      return await readLink(await this.#tree.keeper(), below(BASE_PATH, change.path), { signal });
    return await this.readHostFile(change.path, { maxBytes, signal });
  }

  /** The host's state from which the sandbox's version of a path was made; undefined if it was never seen changed. */
  baseOf(path: Buffer): HostBase | undefined {
    return this.#bases.get(keyOf(path));
  }

  /**
   * Sets the base of a change that comes from a snapshot, which has stored the base of each of its changes.
   */
  setBase(path: Buffer, base: HostBase): void {
    this.#bases.set(keyOf(path), base);
  }

  /** Call this after these changes were made on the host. The host's new state becomes their base. */
  async rebase(paths: readonly Buffer[]): Promise<void> {
    const wanted = new Set(paths.map(keyOf));
    const states = new Map<string, BaseState | null>();
    const { startedNs } = await scanChanges(await this.#tree.keeper(), {
      ...this.#roots,
      listSame: true,
      onChanges(changes) {
        for (const { path, before } of changes) states.set(keyOf(path), before);
      },
    });
    for (const key of wanted)
      this.#bases.set(key, { state: states.get(key) ?? null, unchangedNs: startedNs });
  }

  get #roots() {
    return { base: BASE_PATH, merged: MERGED_PATH, upper: UPPER_PATH, leftOut: this.#tree.leftOut };
  }

  #seen(change: SeenTreeChange): SeenChange {
    const key = keyOf(change.path);
    const known = this.#bases.get(key);
    const base = known === undefined ? baseOf(change.before, this.#scannedNs) : known;
    this.#bases.set(key, base);
    return { ...change, base };
  }
}

/** One of the host's files or symbolic links, which no scan has compared with the sandbox's. */
export interface HostFile {
  path: Buffer;
  state: PresentState;
}

type SeenTreeChange = Exclude<TreeChange, { change: "same" }>;

function isDifferent(change: TreeChange): change is SeenTreeChange {
  return change.change !== "same";
}
