import { basename } from "node:path";
import { isBelow } from "../plan/paths.js";
import type { OverlayLayers, PlannedMount, SandboxPlan } from "../plan/plan.js";
import { treeVolumes } from "./tree-volumes.js";
import { BASE_PATH, FROM_PATH, MERGED_PATH, UPPER_PATH } from "./workspace-tree.js";

/**
 * The lease of a tree's containers where the session's own sandbox is kept without one. They need not outlive
 * brig, because others can be started at any time.
 */
const LEASE_SECONDS = 60;

export type OverlaidPlan = SandboxPlan & { overlay: OverlayLayers };

/**
 * The plan for the keeper of a session's tree. With `isFirst`, the keeper also gives the tree the workspace's
 * owner and mode. With `from`, it can also read the tree of that id.
 */
export function keeperPlan(
  plan: OverlaidPlan,
  {
    isFirst,
    labels,
    from,
  }: { isFirst: boolean; labels: Readonly<Record<string, string>>; from?: string | undefined },
): SandboxPlan {
  const { overlay } = plan;
  const volumes = treeVolumes(overlay.id);
  const witnesses = isFirst
    ? overlay.witnesses.map(({ path, ino }) => ({ path: `${MERGED_PATH}/${basename(path)}`, ino }))
    : [];
  return {
    ...treeContainerPlan(plan, labels),
    policyName: `of the keeper of ${JSON.stringify(overlay.lower)}`,
    overlay: { ...overlay, path: MERGED_PATH, witnesses },
    mounts: [
      baseMount(overlay, "ro"),
      {
        kind: "writable-root",
        path: MERGED_PATH,
        access: "rw",
        identity: null,
        source: { kind: "volume", volume: volumes.merged },
      },
      readOnlyVolume(UPPER_PATH, volumes.upper),
      ...(from === undefined ? [] : [readOnlyVolume(FROM_PATH, treeVolumes(from).merged)]),
    ],
    user: { uid: 0, gid: 0 },
    capabilities: "tree",
    // brig's stricter filter would refuse to make setgid directories, which a workspace may have.
    seccomp: "full-access",
    runnerArguments: isFirst ? ["--copy-rights", `${BASE_PATH}:${MERGED_PATH}`] : [],
  };
}

/**
 * The plan for an applier, which writes to the host's workspace. Paths that were protected in the session's
 * sandboxes are read-only here too.
 */
export function applierPlan(
  plan: OverlaidPlan,
  {
    protectedMounts,
    labels,
    user,
  }: {
    protectedMounts: readonly PlannedMount[];
    labels: Readonly<Record<string, string>>;
    user: SandboxPlan["user"];
  },
): SandboxPlan {
  const { lower } = plan.overlay;
  const within = protectedMounts.filter(({ path }) => isBelow(path, lower));
  return {
    ...treeContainerPlan(plan, labels),
    policyName: `of the writer to ${JSON.stringify(lower)}`,
    mounts: [
      baseMount(plan.overlay, "rw"),
      ...within.map(
        ({ path, identity }): PlannedMount => ({
          kind: "protected",
          path: `${BASE_PATH}${path.slice(lower.length)}`,
          access: "ro",
          identity,
          source: { kind: "host", path },
        }),
      ),
    ],
    user,
    capabilities: "none",
    // The keeper has the same: a setgid directory of the workspace must get its mode back if a commit fails.
    seccomp: "full-access",
  };
}

/** The common part of these plans. It has the image and the limits of the session's plan. */
function treeContainerPlan(plan: OverlaidPlan, labels: Readonly<Record<string, string>>): SandboxPlan {
  return {
    ...plan,
    sessionId: plan.overlay.id,
    workspace: null,
    workingDirectory: "/",
    overlay: null,
    volumes: [],
    parents: [],
    placeholders: [],
    emptyFiles: [],
    absentNames: [],
    covered: [],
    knownDirectories: [],
    notices: [],
    network: "none",
    egress: null,
    noNewPrivileges: true,
    leaseSeconds: plan.leaseSeconds === 0 ? LEASE_SECONDS : plan.leaseSeconds,
    runnerArguments: [],
    imageEnvironment: {},
    callerEnvironment: {},
    labels: { ...labels },
  };
}

function readOnlyVolume(path: string, volume: string): PlannedMount {
  return { kind: "protected", path, access: "ro", identity: null, source: { kind: "volume", volume } };
}

/**
 * If the host's directory is replaced before the engine mounts it, the check of `identity` after the start
 * notices that.
 */
function baseMount({ lower, identity }: OverlayLayers, access: "ro" | "rw"): PlannedMount {
  return {
    kind: access === "rw" ? "writable-root" : "protected",
    path: BASE_PATH,
    access,
    identity,
    source: { kind: "host", path: lower },
  };
}
