import { type BigIntStats, lstatSync } from "node:fs";
import type { ProtectedPath } from "../git/protected-set.js";
import { isAbandonedPlaceholder } from "./placeholders.js";
import type { Identity, KnownDirectory, SandboxPlan } from "./plan.js";
import type { CheckedDirectory } from "./workspace.js";

/** The result of a search through the workspace. `paths` are to be protected; one of them may be inside of another. */
export interface FoundProtection {
  paths: ProtectedPath[];
  knownDirectories: readonly KnownDirectory[];
}

/**
 * The protection of a sandbox, for another one with the same settings, which need not search the same directories
 * again. Null unless all of it is still on the host as that sandbox found it, in the same directories: then
 * what is there now has to be searched. Commands of the other sandbox can change no more than those of this one.
 */
export async function sameProtection(
  plan: SandboxPlan,
  roots: readonly { directory: CheckedDirectory }[],
): Promise<FoundProtection | null> {
  const { overlay, mounts, absentNames, emptyFiles, knownDirectories } = plan;
  const isSameRoot = ({ directory: { path, identity } }: { directory: CheckedDirectory }) => {
    const mount = mounts.find((one) => one.path === path && one.kind !== "protected" && one.kind !== "pin");
    return isSame(overlay?.path === path ? overlay.identity : (mount?.identity ?? null), identity);
  };
  if (!roots.every(isSameRoot)) return null;
  const paths = [
    ...mounts
      .filter(({ kind, path }) => kind === "protected" && !emptyFiles.includes(path))
      .map(({ path, identity }) => ({ path, identity })),
    ...absentNames.map((path) => ({ path, identity: null })),
    ...emptyFiles.map((path) => ({ path, identity: null, isEmptyFile: true })),
  ];
  for (const { path, identity } of paths) if (!isSame(identity, await identityNow(path))) return null;
  return { paths, knownDirectories };
}

/** Null for a path that does not exist, or only as the placeholder of a sandbox. */
async function identityNow(path: string): Promise<Identity | "unknown" | null> {
  let stat: BigIntStats | undefined;
  try {
    stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return "unknown";
  }
  if (stat === undefined || (await isAbandonedPlaceholder(path))) return null;
  return { dev: String(stat.dev), ino: String(stat.ino) };
}

function isSame(one: Identity | null, other: Identity | "unknown" | null): boolean {
  if (one === null || other === null) return one === other;
  return other !== "unknown" && one.dev === other.dev && one.ino === other.ino;
}
