import type { LiveChanges } from "../changes/live-changes.js";
import { keyOf, type TouchedPath } from "../changes/workspace-change.js";
import { leftOutOf } from "../tree/tree-changes.js";

/** The result of a scan. */
export interface TouchedScan {
  /** The time at which the scan began, by the engine's clock. No later change has an earlier time. */
  startedNs: bigint;
  /** All paths that commands have touched, by their bytes as latin1, in order. */
  all: ReadonlyMap<string, TouchedPath>;
  /** The paths that may have changed since the scan before, in order. */
  recent: readonly TouchedPath[];
  /** The paths that were touched at the scan before, and are not any more. */
  vanished: readonly string[];
}

interface ScanSignal {
  signal?: AbortSignal | undefined;
}

/** Finds out what has changed in a tree since the last scan, usually without comparing everything again. */
export class TouchedPaths {
  readonly #changes: LiveChanges;
  #last: Pick<TouchedScan, "startedNs" | "all"> | null = null;

  constructor(changes: LiveChanges) {
    this.#changes = changes;
  }

  /** Scans for changes since the last accepted scan. Errors: those of a scan. */
  async scan({ signal }: ScanSignal): Promise<TouchedScan> {
    return (await this.#scanRecent(signal)) ?? (await this.scanAll({ signal }));
  }

  /**
   * Also notices what has become as the host's because the host has changed. Files that were changed this long
   * before the last scan count as changed again.
   */
  async scanAll({ signal, doubtNs = 0n }: ScanSignal & { doubtNs?: bigint }): Promise<TouchedScan> {
    const all = new Map<string, TouchedPath>();
    const { startedNs } = await this.#changes.scanTouched({
      since: undefined,
      signal,
      onChanges(paths) {
        for (const path of paths) all.set(keyOf(path.path), path);
      },
    });
    this.#changes.sawAll({ startedNs });
    const last = this.#last && { ...this.#last, startedNs: this.#last.startedNs - doubtNs };
    return {
      startedNs,
      all,
      recent: [...all].flatMap(([key, path]) => (isAsAt(last, key, path) ? [] : [path])),
      vanished: last === null ? [] : [...last.all.keys()].filter((key) => !all.has(key)),
    };
  }

  /**
   * Call this once everything that a scan has reported is stored. The next scan is compared with this one.
   */
  accept({ startedNs, all }: TouchedScan): void {
    this.#last = { startedNs, all };
  }

  /**
   * Returns null if a path has vanished, or was moved here and kept its times. Only a full scan tells which.
   */
  async #scanRecent(signal: AbortSignal | undefined): Promise<TouchedScan | null> {
    const last = this.#last;
    if (last === null) return null;
    const recent = new Map<string, TouchedPath>();
    const { startedNs, leftOut } = await this.#changes.scanTouched({
      since: last.startedNs,
      signal,
      onChanges(paths) {
        for (const path of paths) recent.set(keyOf(path.path), path);
      },
    });
    const others = [...last.all].filter(([key]) => !recent.has(key)).map(([, path]) => path);
    const expected = leftOutOf(others);
    if (leftOut.count !== expected.count || leftOut.sha256 !== expected.sha256) return null;
    this.#changes.sawAll({ startedNs });
    return { startedNs, all: joined(last.all, recent), recent: [...recent.values()], vanished: [] };
  }
}

/**
 * Whether a file is certainly unchanged since the last scan. If its time is as late as that scan, it may have
 * been written again within the same tick of the clock, and would look the same.
 */
function isAsAt(
  last: Pick<TouchedScan, "startedNs" | "all"> | null,
  key: string,
  path: TouchedPath,
): boolean {
  const then = last?.all.get(key);
  if (last === null || then === undefined || then.change !== path.change) return false;
  if (then.now === null || path.now === null) return then.now === path.now;
  const isSame = then.now.ino === path.now.ino && then.now.changedNs === path.now.changedNs;
  return isSame && path.now.changedNs < last.startedNs;
}

function joined(
  all: ReadonlyMap<string, TouchedPath>,
  recent: ReadonlyMap<string, TouchedPath>,
): Map<string, TouchedPath> {
  const isNew = [...recent.keys()].some((key) => !all.has(key));
  const map = new Map([...all, ...recent]);
  // Strings of latin1 sort in the order of their bytes.
  return isNew ? new Map([...map].sort(([one], [other]) => (one < other ? -1 : 1))) : map;
}
