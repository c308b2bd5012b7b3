import type { BigIntStats } from "node:fs";
import { BrigError, isBrigError } from "../../errors.js";
import { directoriesBetween, isAtOrBelow, isBelow } from "../plan/paths.js";
import { isPlaceholderFile } from "../plan/placeholders.js";
import type { Identity } from "../plan/plan.js";
import { type BytePath, listNames, lstatOrNull, quoteBytePath, type Step, stepsTo } from "./byte-paths.js";

/** A path to be mounted read-only. */
export interface ProtectedPath {
  path: BytePath;
  /** Null when nothing exists there yet, or only the empty placeholder of an earlier session. */
  identity: Identity | null;
  /** Nothing exists there, and what keeps it so has to be an empty file, or one of an earlier session is there. */
  isEmptyFile?: boolean | undefined;
}

type WhenAbsent = "protect" | "ignore" | "refuse";

/** A path that git obeys because a file, a setting or a link names it. */
interface Reference {
  path: BytePath;
  /** The file or link that names the path, for messages. */
  from: BytePath;
  whenAbsent: WhenAbsent;
  /** Ignore the reference unless it leads to a regular file. */
  onlyFiles?: boolean;
  /** Git reads it, and would fail to read a directory. */
  isFile?: boolean;
}

/** The paths in writable directories that a sandbox may not change. */
export class ProtectedSet {
  readonly #writable: readonly BytePath[];
  readonly #paths: Map<BytePath, ProtectedPath>;
  readonly #givenUp: readonly BytePath[];

  /** `givenUp`: what need not be protected where that is not possible. */
  constructor(
    writable: readonly BytePath[],
    known: readonly ProtectedPath[],
    givenUp: readonly BytePath[] = [],
  ) {
    this.#writable = writable;
    this.#givenUp = givenUp;
    this.#paths = new Map(known.map((one) => [one.path, one]));
  }

  get all(): ProtectedPath[] {
    return [...this.#paths.values()];
  }

  /** Whether a command could put something else at this path. */
  isWritable(path: BytePath): boolean {
    if (!this.isInWritable(path)) return false;
    return this.all.every(
      (outer) =>
        !isAtOrBelow(path, outer.path) ||
        this.#writable.some((root) => isBelow(root, outer.path) && isAtOrBelow(path, root)),
    );
  }

  isInWritable(path: BytePath): boolean {
    return this.#writable.some((root) => isAtOrBelow(path, root));
  }

  /** Returns null for what git, run by the same user outside the writable directories, cannot read either. */
  ifReadable<T>(path: BytePath, read: () => T): T | null {
    try {
      return read();
    } catch (cause) {
      if (!this.isInWritable(path)) return null;
      throw cannotProtect(path, "it cannot be read, so where it leads is unknown", cause);
    }
  }

  /** Adds what a path leads to, or as much of it as can be protected if the user has given up the path. */
  followFrom(path: BytePath, follow: () => void): void {
    try {
      follow();
    } catch (error) {
      if (!isBrigError(error, "policy.not-enforced")) throw error;
      if (!this.#givenUp.includes(path)) throw orGiveUp(path, error);
    }
  }

  /** Adds a path. No directory on the way to it may be a symbolic link. */
  protect(path: BytePath, { isFile = false }: { isFile?: boolean } = {}): void {
    if (!this.#paths.has(path)) this.#paths.set(path, { path, ...foundAt(path, isFile) });
  }

  /** Protects and returns what a reference leads to; null when that is ignored or does not exist. */
  follow(reference: Reference): BytePath | null {
    const steps = stepsTo(reference.path);
    const target = steps.at(-1)?.path ?? "/";
    const stat = lstatOrNull(target);
    if (reference.onlyFiles && !stat?.isFile()) return null;
    if (stat === null && reference.whenAbsent === "ignore") return null;
    this.#refuseReplaceable(steps, target, reference);
    if (!this.isWritable(target)) return target;
    if (stat === null && reference.whenAbsent === "refuse")
      throw cannotProtect(reference.from, `it points to ${quoteBytePath(target)}, which could be created`);
    const path = this.#outermost(target, (found) => found === null) ?? target;
    this.protect(path, { isFile: path === target && reference.isFile });
    return stat === null ? null : target;
  }

  /** The outermost name of a path that is not a directory; null when all are, the last one included. */
  firstNonDirectory(path: BytePath): BytePath | null {
    return this.#outermost(path, (stat) => stat?.isDirectory() !== true);
  }

  #outermost(path: BytePath, isWanted: (stat: BigIntStats | null) => boolean): BytePath | null {
    const above = this.#writable.filter((directory) => isBelow(path, directory));
    const root = above.toSorted((a, b) => a.length - b.length)[0];
    const between = root === undefined ? [] : directoriesBetween(root, path);
    return [...between, path].find((at) => isWanted(lstatOrNull(at))) ?? null;
  }

  #refuseReplaceable(steps: readonly Step[], target: BytePath, { from }: Reference): void {
    const inside = this.#writable.find((root) => isAtOrBelow(root, target));
    if (inside !== undefined && target !== "/")
      throw cannotProtect(
        from,
        `it points to ${quoteBytePath(target)}, which contains all of ${quoteBytePath(inside)}`,
      );
    for (const { path, isLink } of steps) {
      if (!this.isWritable(path)) continue;
      const isOnTheWay = !this.#writable.includes(path) && !isAtOrBelow(target, path);
      if (isLink || isOnTheWay) throw replaceable(from, { path, target, isLink });
    }
  }
}

function foundAt(path: BytePath, isFile: boolean): Omit<ProtectedPath, "path"> {
  const stat = lstatOrNull(path);
  if (stat === null) return { identity: null, ...(isFile && { isEmptyFile: true }) };
  if (stat.isFile() && isPlaceholderFile(stat)) return { identity: null, isEmptyFile: true };
  if (stat.isSymbolicLink())
    throw cannotProtect(
      path,
      "it is a symbolic link, which a command could replace even while its target is mounted read-only",
    );
  if (!stat.isDirectory() && !stat.isFile())
    throw cannotProtect(path, "it is neither a file nor a directory");
  if (stat.isDirectory() && (stat.mode & 0o222n) === 0n && listNames(path).length === 0)
    return { identity: null };
  return { identity: { dev: String(stat.dev), ino: String(stat.ino) } };
}

function replaceable(
  from: BytePath,
  { path, target, isLink }: { path: BytePath; target: BytePath; isLink: boolean },
): BrigError {
  const what = isLink ? "a symbolic link" : "a directory";
  return cannotProtect(
    from,
    `it leads to ${quoteBytePath(target)} by way of ${quoteBytePath(path)}, ${what} that a command could replace`,
  );
}

function orGiveUp(path: BytePath, { message, hint, cause }: BrigError): BrigError {
  return new BrigError(message, {
    code: "policy.not-enforced",
    hint: `${hint}, or let commands change it: --unprotected ${quoteBytePath(path)}`,
    cause,
  });
}

export function cannotProtect(path: BytePath, reason: string, cause?: unknown): BrigError {
  return new BrigError(`${quoteBytePath(path)} cannot be kept read-only: ${reason}`, {
    code: "policy.not-enforced",
    hint: "git on this machine obeys it: repair it or remove it, use --sandbox read-only",
    cause,
  });
}
