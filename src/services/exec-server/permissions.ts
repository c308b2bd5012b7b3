import { join, normalize } from "node:path";
import { z } from "zod";
import { isAtOrBelow, isBelow } from "../../sandbox/index.js";
import { fileUri } from "./wire/file-uri.js";

const specialPath = z.looseObject({ kind: z.string(), subpath: z.string().nullish() });

const entrySchema = z.looseObject({
  path: z.looseObject({
    type: z.string(),
    value: specialPath.optional(),
    path: z.string().optional(),
  }),
  access: z.string(),
});

const managedSchema = z.looseObject({
  type: z.literal("managed"),
  file_system: z.union([
    z.looseObject({ type: z.literal("restricted"), entries: z.array(entrySchema).max(1000) }),
    z.looseObject({ type: z.literal("unrestricted") }),
  ]),
  network: z.enum(["restricted", "enabled"]),
});

/** Context that Codex sends along with a process or a file operation: a permission profile and the directories that it is about. */
export const sandboxContext = z.looseObject({
  permissions: z.union([managedSchema, z.looseObject({ type: z.literal("disabled") })]),
  cwd: fileUri.nullish(),
  workspaceRoots: z.array(fileUri).max(100).nullish(),
});

export type SandboxContext = z.infer<typeof sandboxContext>;
type Entry = z.infer<typeof entrySchema>;

/** Mounts and network that a sandbox must have for a permission profile. Equal needs share one sandbox. */
export interface SandboxNeed {
  base: "read-only" | "workspace-write" | "danger-full-access";
  workspace: string;
  /** Further writable directories of the host. */
  writableRoots: string[];
  /** Names at the top of every writable directory that stay read-only, whether they exist or not. */
  protectedNames: string[];
  /**
   * Whether commands can write to the home directory and to /run. Both are in memory and end with the
   * sandbox, as /tmp does, to which commands can always write.
   */
  hasWritableHome: boolean;
  network: "none" | "full";
}

/** The sandbox that a permission profile means, or the part of the profile that no sandbox of brig enforces exactly. */
export type PermissionDecision = { kind: "need"; need: SandboxNeed } | Refusal;

interface Refusal {
  kind: "refused";
  reason: string;
}

/** A client that asks for no sandbox gets the one that permits the most: root in a container, with a network. */
export function needWithoutSandbox(workspace: string): SandboxNeed {
  return {
    base: "danger-full-access",
    workspace,
    writableRoots: [],
    protectedNames: [],
    hasWritableHome: true,
    network: "full",
  };
}

/** Sees the workspace, changes nothing. */
export function needToLook(workspace: string): SandboxNeed {
  return { ...needWithoutSandbox(workspace), base: "read-only", hasWritableHome: false, network: "none" };
}

/**
 * Decides which sandbox enforces a permission profile. Less than the profile grants is possible: the host's files outside the workspace
 * are not visible at all. More is not: what would need it is refused.
 */
export function decidePermissions(
  { permissions }: SandboxContext,
  { workspace, otherRoots }: { workspace: string; otherRoots: readonly string[] },
): PermissionDecision {
  if (permissions.type === "disabled") return { kind: "need", need: needWithoutSandbox(workspace) };
  const network = permissions.network === "enabled" ? "full" : "none";
  if (permissions.file_system.type === "unrestricted")
    return { kind: "need", need: { ...needWithoutSandbox(workspace), network } };
  const read = readRules(permissions.file_system.entries, [workspace, ...otherRoots]);
  if (read.kind === "refused") return read;
  const mounts = planMounts(read.rules, workspace);
  return mounts.kind === "refused"
    ? mounts
    : { kind: "need", need: { ...mounts.planned, workspace, network } };
}

/** Rules of a profile's entry for the host's files. */
interface Rules {
  read: string[];
  write: string[];
  isRootWritable: boolean;
  isTmpWritable: boolean;
}

const noRules: Rules = { read: [], write: [], isRootWritable: false, isTmpWritable: false };

function readRules(
  entries: readonly Entry[],
  roots: readonly string[],
): { kind: "rules"; rules: Rules } | Refusal {
  const rules: Rules[] = [];
  for (const entry of entries) {
    const read = readEntry(entry, roots);
    if ("kind" in read) return read;
    rules.push(read);
  }
  return {
    kind: "rules",
    rules: {
      read: unique(rules.flatMap(({ read }) => read)),
      write: unique(rules.flatMap(({ write }) => write)),
      isRootWritable: rules.some(({ isRootWritable }) => isRootWritable),
      isTmpWritable: rules.some(({ isTmpWritable }) => isTmpWritable),
    },
  };
}

function readEntry({ access, path }: Entry, roots: readonly string[]): Rules | Refusal {
  if (access !== "read" && access !== "write")
    return refused(`the access ${JSON.stringify(access)} to a path cannot be enforced by mounts`);
  if (path.type === "special" && path.value !== undefined)
    return readSpecialEntry(path.value, { access, roots });
  if (path.type !== "path" || path.path === undefined)
    return refused(`paths of the type ${JSON.stringify(path.type)} cannot be enforced by mounts`);
  const absolute = absolutePath(path.path);
  if (absolute === null) return refused(`${JSON.stringify(path.path)} is not an absolute path`);
  return { ...noRules, [access]: [absolute] };
}

function readSpecialEntry(
  { kind, subpath }: z.infer<typeof specialPath>,
  { access, roots }: { access: "read" | "write"; roots: readonly string[] },
): Rules | Refusal {
  switch (kind) {
    case "project_roots":
      return { ...noRules, [access]: roots.map((root) => join(root, subpath ?? ".")) };
    case "root":
      return { ...noRules, isRootWritable: access === "write" };
    // Every sandbox has temporary directories of its own, and none of the host's.
    case "slash_tmp":
    case "tmpdir":
      return { ...noRules, isTmpWritable: access === "write" };
    // The files that programs need to start are in the image.
    case "minimal":
      if (access === "read") return noRules;
  }
  return refused(`${access} access to the special path ${JSON.stringify(kind)} cannot be enforced by mounts`);
}

/**
 * This directory holds the workspace's configuration of brig, which brig reads on the host. Codex's profiles do not
 * protect it.
 */
const OWN_DIRECTORY = ".brig";

type Mounts = Pick<SandboxNeed, "base" | "writableRoots" | "protectedNames" | "hasWritableHome">;

function planMounts(
  { read, write, isRootWritable, isTmpWritable }: Rules,
  workspace: string,
): { kind: "planned"; planned: Mounts } | Refusal {
  const isWorkspaceWritable = isRootWritable || write.includes(workspace);
  const roots = unique([...(isWorkspaceWritable ? [workspace] : []), ...write]);
  // Paths in a writable directory are writable already.
  const writable = roots.filter((path) => !roots.some((other) => isBelow(path, other))).toSorted();
  const kept = read.flatMap((path) => {
    const root = writable.find((other) => isAtOrBelow(path, other));
    return root === undefined
      ? []
      : [
          {
            path,
            name: path.slice(root.length + 1),
            isKeptAlone: !write.some((other) => isAtOrBelow(other, path)),
          },
        ];
  });
  const around = writable.find((path) => isBelow(workspace, path));
  if (around !== undefined)
    return refused(`the writable directory ${JSON.stringify(around)} contains the workspace`);
  const mixed = kept.find(({ isKeptAlone }) => !isKeptAlone);
  if (mixed !== undefined)
    return refused(`${JSON.stringify(mixed.path)} is read-only, and it or something in it is writable`);
  const nested = kept.find(({ name }) => name.includes("/"));
  if (nested !== undefined)
    return refused(
      `${JSON.stringify(nested.path)} is not at the top of a writable directory, so it cannot be kept read-only`,
    );
  const elsewhere = read.find((path) => isRootWritable && !kept.some((one) => one.path === path));
  if (elsewhere !== undefined)
    return refused(`${JSON.stringify(elsewhere)} cannot be kept read-only where everything else is writable`);
  return {
    kind: "planned",
    planned: {
      base: isRootWritable ? "danger-full-access" : isWorkspaceWritable ? "workspace-write" : "read-only",
      writableRoots: writable.filter((path) => path !== workspace),
      protectedNames: unique([
        ...kept.map(({ name }) => name),
        ...(isRootWritable || writable.length === 0 ? [] : [OWN_DIRECTORY]),
      ]).toSorted(),
      hasWritableHome: isRootWritable || isTmpWritable,
    },
  };
}

/** A path of a profile is absolute, or a URI. */
function absolutePath(text: string): string | null {
  if (!text.startsWith("/")) return fileUri.safeParse(text).data ?? null;
  return text.includes("\0") ? null : normalize(text).replace(/(?<=.)\/$/, "");
}

function unique(paths: readonly string[]): string[] {
  return [...new Set(paths)];
}

function refused(reason: string): Refusal {
  return { kind: "refused", reason };
}
