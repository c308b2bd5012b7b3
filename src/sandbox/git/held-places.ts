import type { BigIntStats } from "node:fs";
import { BrigError } from "../../errors.js";
import { directoriesBetween, isAtOrBelow, isBelow } from "../plan/paths.js";
import type { Identity } from "../plan/plan.js";
import { type BytePath, listNames, lookAt, quoteBytePath, type Step, stepsTo } from "./host-names.js";

/** A path that is mounted read-only. */
export interface HeldPlace {
  path: BytePath;
  /** Null: there is nothing yet, or an empty directory that a session before left. */
  identity: Identity | null;
}

/** What to do where a file or directory that git obeys is not there. */
export type WhenAbsent = "hold" | "ignore" | "refuse";

export interface Lead {
  path: BytePath;
  /** The file or link that leads there, for messages. */
  from: BytePath;
  whenAbsent: WhenAbsent;
  /** Leaves directories alone. */
  onlyFiles?: boolean;
}

/** The places in writable directories that a sandbox may not change. They only grow in number. */
export class HeldPlaces {
  readonly #writable: readonly BytePath[];
  readonly #held = new Map<BytePath, HeldPlace>();

  constructor(writable: readonly BytePath[], held: readonly HeldPlace[]) {
    this.#writable = writable;
    for (const place of held) this.#held.set(place.path, place);
  }

  get all(): HeldPlace[] {
    return [...this.#held.values()];
  }

  /** Whether a command could put something else at this path. */
  isWritable(path: BytePath): boolean {
    if (!this.#writable.some((root) => isAtOrBelow(path, root))) return false;
    const cover = this.all.filter((place) => isAtOrBelow(path, place.path));
    return cover.every((place) =>
      this.#writable.some((root) => isBelow(root, place.path) && isAtOrBelow(path, root)),
    );
  }

  /** Holds what is at the path, which has no link on the way. */
  hold(path: BytePath): HeldPlace {
    const known = this.#held.get(path);
    if (known !== undefined) return known;
    const place = { path, identity: identityOf(path) };
    this.#held.set(path, place);
    return place;
  }

  /** Holds the place that a file, a setting or a link leads to. Null where no command can change what is there. */
  follow(lead: Lead): BytePath | null {
    const steps = stepsTo(lead.path);
    const place = steps.at(-1)?.path ?? "/";
    const stat = lookAt(place);
    if (lead.onlyFiles && !stat?.isFile()) return null;
    if (stat === null && lead.whenAbsent === "ignore") return null;
    this.#refuseReplaceable(steps, place, lead);
    if (!this.isWritable(place)) return place;
    if (stat === null && lead.whenAbsent === "refuse")
      throw notHeld(lead.from, `it points to ${quoteBytePath(place)}, which could be created`);
    this.hold(this.#outermost(place, (found) => found === null) ?? place);
    return stat === null ? null : place;
  }

  /** The outermost name on the way to a directory that is none; null where all are, the last one too. */
  obstacle(path: BytePath): BytePath | null {
    return this.#outermost(path, (stat) => stat?.isDirectory() !== true);
  }

  #outermost(path: BytePath, isMeant: (stat: BigIntStats | null) => boolean): BytePath | null {
    const root = this.#writable.filter((directory) => isBelow(path, directory)).toSorted(byLength)[0];
    const between = root === undefined ? [] : directoriesBetween(root, path);
    return [...between, path].find((at) => isMeant(lookAt(at))) ?? null;
  }

  #refuseReplaceable(steps: readonly Step[], place: BytePath, { from }: Lead): void {
    const inside = this.#writable.find((root) => isAtOrBelow(root, place));
    if (inside !== undefined && place !== "/")
      throw notHeld(
        from,
        `it points to ${quoteBytePath(place)}, which holds all of ${quoteBytePath(inside)}`,
      );
    for (const { path, isLink } of steps) {
      if (!this.isWritable(path)) continue;
      if (isLink) throw replaceable(from, { path, place, isLink });
      const isRoot = this.#writable.includes(path);
      if (!isRoot && !isAtOrBelow(place, path)) throw replaceable(from, { path, place, isLink });
    }
  }
}

function byLength(a: string, b: string): number {
  return a.length - b.length;
}

function identityOf(path: BytePath): Identity | null {
  const stat = lookAt(path);
  if (stat === null) return null;
  if (stat.isSymbolicLink())
    throw notHeld(
      path,
      "it is a symbolic link, and a link can be replaced whatever is mounted on its target",
    );
  if (!stat.isDirectory() && !stat.isFile()) throw notHeld(path, "it is neither a file nor a directory");
  if (stat.isDirectory() && (stat.mode & 0o222n) === 0n && listNames(path).length === 0) return null;
  return { dev: String(stat.dev), ino: String(stat.ino) };
}

function replaceable(
  from: BytePath,
  { path, place, isLink }: { path: BytePath; place: BytePath; isLink: boolean },
): BrigError {
  const what = isLink ? "a symbolic link" : "a directory";
  return notHeld(
    from,
    `it leads to ${quoteBytePath(place)} by way of ${quoteBytePath(path)}, ${what} that a command could replace`,
  );
}

export function notHeld(path: BytePath, reason: string, cause?: unknown): BrigError {
  return new BrigError(`${quoteBytePath(path)} cannot be kept read-only: ${reason}`, {
    code: "policy.not-enforced",
    hint: "git on this machine obeys it: repair it or remove it, use --sandbox read-only, or a policy file that does not protect .git",
    cause,
  });
}
