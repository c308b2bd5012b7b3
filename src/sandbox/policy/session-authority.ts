import { posix } from "node:path";
import type { ApprovalPolicy } from "./approval-policy.js";
import type { NetworkScope } from "./network.js";
import {
  compareApprovals,
  compareModes,
  compareNetworks,
  isNoLooser,
  type Strictness,
} from "./strictness.js";

/** Everything that a session may do. */
export interface SessionAuthority {
  /** A mode, or the path of a policy file as it was written. */
  sandboxMode: string;
  approvalPolicy: ApprovalPolicy;
  network: NetworkScope;
  /** Absolute, without symbolic links; null without a workspace. */
  workspace: string | null;
  /** Further writable directories, absolute and without symbolic links. */
  writableRoots: readonly string[];
  /** Names at the top of the workspace and of each root that stay read-only, if the mode protects any. */
  protectedNames: readonly string[];
  tools: readonly string[];
  /** Whether it has MCP servers. If so, the approval of their calls is compared, too. */
  hasMcpServers: boolean;
}

/**
 * The powers that a sub-session would have beyond its parent, as texts for people; empty if none. Settings that cannot
 * be compared, such as two custom policies, count as more.
 */
export function excessOver(parent: SessionAuthority, child: SessionAuthority): readonly string[] {
  const mode = compareModes(child.sandboxMode, parent.sandboxMode);
  const beyond: readonly (readonly [isBeyond: boolean, what: string])[] = [
    [!isNoLooser(mode), mode === "incomparable" ? incomparableModes(parent, child) : "sandbox mode"],
    [!isNoLooser(compareSessionApprovals(parent, child)), "approval policy"],
    [!isNoLooser(compareNetworks(child.network, parent.network)), "network"],
    [
      child.workspace !== null && !reaches(parent, child.workspace),
      `the workspace ${child.workspace} is outside of the directories that the parent session may change`,
    ],
    [!child.writableRoots.every((root) => reaches(parent, root)), "writable directories"],
    [!parent.protectedNames.every((name) => child.protectedNames.includes(name)), "protected names"],
    [!child.tools.every((tool) => parent.tools.includes(tool)), "tools"],
    [child.hasMcpServers && !parent.hasMcpServers, "MCP servers"],
  ];
  return beyond.flatMap(([isBeyond, what]) => (isBeyond ? [what] : []));
}

function incomparableModes(parent: SessionAuthority, child: SessionAuthority): string {
  return `the policy ${child.sandboxMode} cannot be compared with ${parent.sandboxMode}`;
}

/** A looser mode is reported separately, so the approvals are compared under the parent's mode. */
function compareSessionApprovals(parent: SessionAuthority, child: SessionAuthority): Strictness {
  const isModeFit = isNoLooser(compareModes(child.sandboxMode, parent.sandboxMode));
  return compareApprovals(
    { policy: child.approvalPolicy, modes: [isModeFit ? child.sandboxMode : parent.sandboxMode] },
    { policy: parent.approvalPolicy, modes: [parent.sandboxMode] },
    { hasMcpServers: child.hasMcpServers },
  );
}

/** Whether a directory is within the parent's writable directories, and not protected there. */
function reaches(parent: SessionAuthority, directory: string): boolean {
  if (!posix.isAbsolute(directory)) return false;
  const roots =
    parent.workspace === null ? parent.writableRoots : [parent.workspace, ...parent.writableRoots];
  const path = posix.resolve(directory);
  const protectedNames = parent.sandboxMode === "danger-full-access" ? [] : parent.protectedNames;
  const within = roots.filter((root) => isWithin(path, posix.resolve(root)));
  const isProtected = within.some((root) =>
    protectedNames.some((name) => isWithin(path, posix.resolve(root, name))),
  );
  return within.length > 0 && !isProtected;
}

function isWithin(path: string, root: string): boolean {
  return path === root || root === "/" || path.startsWith(`${root}/`);
}
