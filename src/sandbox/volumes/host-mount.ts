import { lstatSync } from "node:fs";
import { BrigError } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import { isAtOrBelow } from "../plan/paths.js";
import type { PlannedMount } from "../plan/plan.js";

/** A file or directory of the host that brig itself mounts read-only, at a path of its own choice. */
export interface HostMount {
  /** Absolute path on the host, without symbolic links. */
  source: string;
  /** Absolute path in the sandbox. */
  path: string;
}

interface PrivateMounts {
  /** Mounted read-only. */
  hostMounts?: readonly HostMount[] | undefined;
  /** The host's directory that is mounted, writable, at `home`. */
  privateHome?: string | undefined;
  home: string;
}

/**
 * Plans these mounts, with the identity that each must still have inside. Error: `workspace.invalid` if a source is
 * gone, or if a path is also that of a directory which the user has given.
 */
export function planPrivateMounts(
  { hostMounts = [], privateHome, home }: PrivateMounts,
  roots: readonly string[],
): PlannedMount[] {
  const mounts = hostMounts.map((one) => planned(one, "ro"));
  if (privateHome !== undefined) mounts.push(planned({ source: privateHome, path: home }, "rw"));
  for (const { path } of mounts) refuseOverlap(path, roots);
  return mounts;
}

function planned({ source, path }: HostMount, access: "ro" | "rw"): PlannedMount {
  return {
    kind: "private",
    path,
    access,
    identity: identify(source),
    source: { kind: "host", path: source },
  };
}

function refuseOverlap(path: string, roots: readonly string[]): void {
  const root = roots.find((one) => isAtOrBelow(path, one) || isAtOrBelow(one, path));
  if (root === undefined) return;
  throw new BrigError(`${JSON.stringify(root)} cannot be given to this sandbox: brig mounts ${path} itself`, {
    code: "workspace.invalid",
    hint: "give another directory, or move this one",
  });
}

function identify(source: string): { dev: string; ino: string } {
  try {
    const { dev, ino } = lstatSync(source, { bigint: true });
    return { dev: String(dev), ino: String(ino) };
  } catch (cause) {
    throw new BrigError(`${JSON.stringify(source)} cannot be mounted: ${errnoOf(cause) ?? "unknown error"}`, {
      code: "workspace.invalid",
      cause,
    });
  }
}
