import { lstatSync, type Stats } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { type BytePath, listNames, quoteBytePath } from "../git/byte-paths.js";

export interface SpecialFile {
  path: BytePath;
  kind: "socket" | "fifo";
}

/** The state of a directory when it was listed. */
interface Listed {
  ino: number;
  changedMs: number;
  isSettled: boolean;
  special: readonly SpecialFile[];
}

const MAX_BLOCKED_MS = 10;
/** A tree of a million directories takes a few seconds. */
const MAX_SEARCH_MS = 60_000;
/** Some file systems note the time of a change in steps of two seconds: a later change may have the same time. */
const SETTLED_AFTER_MS = 2000;
/** With more directories than this the trees are searched only once, so that they take no more memory. */
const MAX_KEPT_DIRECTORIES = 100_000;

/** The sockets and FIFOs in directories of the host. A second search lists only directories that have changed. */
export class SpecialFiles {
  readonly #directories = new Map<BytePath, Listed | null>();
  #isTooLarge = false;

  constructor(trees: readonly BytePath[]) {
    for (const tree of trees) this.#directories.set(tree, null);
  }

  /** Whether the trees are small enough to be searched again. */
  get canSearchAgain(): boolean {
    return !this.#isTooLarge;
  }

  /** Follows no link. Error: `workspace.invalid` for what cannot be searched although a command could get there. */
  async search(): Promise<SpecialFile[]> {
    const found: SpecialFile[] = [];
    const started = performance.now();
    let sliceEnd = started + MAX_BLOCKED_MS;
    // Directories that are added to the map meanwhile come in their turn.
    for (const [path, known] of this.#directories) {
      const listed = this.#list(path, known);
      if (listed === null) this.#directories.delete(path);
      else {
        this.#directories.set(path, listed);
        found.push(...listed.special);
      }
      const now = performance.now();
      if (now < sliceEnd) continue;
      if (now - started > MAX_SEARCH_MS) throw tooLarge(path);
      await nextTurn();
      sliceEnd = performance.now() + MAX_BLOCKED_MS;
    }
    if (this.#directories.size > MAX_KEPT_DIRECTORIES) {
      this.#isTooLarge = true;
      this.#directories.clear();
    }
    return found;
  }

  /** Null for a directory that is gone, or that no command can get into. */
  #list(path: BytePath, known: Listed | null): Listed | null {
    try {
      const stat = lstatSync(Buffer.from(path, "latin1"), { throwIfNoEntry: false });
      if (stat === undefined || !stat.isDirectory()) return null;
      const { ino, ctimeMs: changedMs } = stat;
      if (known?.isSettled && known.ino === ino && known.changedMs === changedMs) return known;
      const isSettled = Date.now() - changedMs > SETTLED_AFTER_MS;
      return { ino, changedMs, isSettled, special: this.#listEntries(path) };
    } catch (error) {
      refuseUnlessInaccessible(path, error);
      return null;
    }
  }

  #listEntries(path: BytePath): readonly SpecialFile[] {
    const special: SpecialFile[] = [];
    for (const entry of listNames(path)) {
      const inside = path === "/" ? `/${entry.name}` : `${path}/${entry.name}`;
      if (entry.isDirectory() && !this.#directories.has(inside)) this.#directories.set(inside, null);
      else if (entry.isSocket()) special.push({ path: inside, kind: "socket" });
      else if (entry.isFIFO()) special.push({ path: inside, kind: "fifo" });
    }
    return special.length === 0 ? NONE : special;
  }
}

const NONE: readonly SpecialFile[] = [];

/** A command may know the names in a directory that cannot be listed but can be entered. */
function refuseUnlessInaccessible(path: BytePath, error: unknown): void {
  const errno = errnoOf(error);
  if (errno === "ENOENT" || errno === "ENOTDIR") return;
  if (errno === "EACCES" && !canBeEntered(path)) return;
  throw new BrigError(`${quoteBytePath(path)} cannot be searched for sockets and FIFOs: ${errno}`, {
    code: "workspace.invalid",
    hint: "a command could reach a program of this machine there: make the directory readable, or move it out of the workspace",
    cause: error,
  });
}

function canBeEntered(path: BytePath): boolean {
  const ownerMayEnter = 0o100;
  const stat: Stats | undefined = lstatSync(Buffer.from(path, "latin1"), { throwIfNoEntry: false });
  return stat !== undefined && stat.uid === process.getuid?.() && (stat.mode & ownerMayEnter) !== 0;
}

function tooLarge(path: BytePath): BrigError {
  return new BrigError(
    `there are too many directories to be searched for sockets and FIFOs, as in ${quoteBytePath(path)}`,
    { code: "workspace.invalid", hint: "choose a directory further down, or use --workspace overlay" },
  );
}
