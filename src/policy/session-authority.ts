import { posix } from "node:path";
import { decideAfterDenial, decideCommand } from "./approval-decision.js";
import type { ApprovalPolicy } from "./approval-policy.js";
import type { CommandRisk } from "./command-safety/command-risk.js";
import { SANDBOX_MODES, type SandboxMode } from "./modes.js";
import { coversHost, type NetworkPolicy } from "./network.js";

/** All that a session may do. */
export interface SessionAuthority {
  /** A mode, or the path of a policy file as it was given. */
  sandboxMode: string;
  approvalPolicy: ApprovalPolicy;
  network: NetworkAuthority;
  /** Absolute, without symbolic links; null without a workspace. */
  workspace: string | null;
  /** Further writable directories, absolute and without symbolic links. */
  writableRoots: readonly string[];
  /** Names at the top of the workspace and of each root that stay read-only where the mode protects any. */
  protectedNames: readonly string[];
  /** Names of the tools that may be called. */
  tools: readonly string[];
}

type NetworkAuthority = { kind: "none" } | { kind: "full" } | { kind: "allowlist"; hosts: readonly string[] };

export type AuthorityCheck =
  | {
      kind: "allowed";
      authority: SessionAuthority;
      /** What is less than was wanted, for people. */
      narrowed: readonly string[];
    }
  /** What is wanted cannot be had in part. */
  | { kind: "refused"; reason: string };

/**
 * What a session that is started by another one may do: what it wants, as far as its parent may do it too. What cannot be compared,
 * such as two policies of a user's own, or lies outside of the parent's reach, is refused.
 */
export function noWeakerThan(parent: SessionAuthority, child: SessionAuthority): AuthorityCheck {
  const mode = narrowMode(parent.sandboxMode, child.sandboxMode);
  if (mode === null)
    return refused(`the policy ${child.sandboxMode} cannot be compared with ${parent.sandboxMode}`);
  if (child.workspace !== null && !reaches(parent, child.workspace))
    return refused(`the workspace ${child.workspace} is not within what the parent session may change`);
  const authority: SessionAuthority = {
    sandboxMode: mode,
    approvalPolicy: narrowApproval(parent, { ...child, sandboxMode: mode }),
    network: narrowNetwork(parent.network, child.network),
    workspace: child.workspace,
    writableRoots: child.writableRoots.filter((root) => reaches(parent, root)),
    protectedNames: [...new Set([...parent.protectedNames, ...child.protectedNames])],
    tools: child.tools.filter((tool) => parent.tools.includes(tool)),
  };
  return { kind: "allowed", authority, narrowed: differences(child, authority) };
}

function refused(reason: string): AuthorityCheck {
  return { kind: "refused", reason };
}

/** The stricter of two modes. A policy of a user's own is at most full access, and otherwise only like itself. */
function narrowMode(parent: string, child: string): string | null {
  if (parent === child || parent === "danger-full-access") return child;
  if (!isMode(parent) || !isMode(child)) return null;
  return SANDBOX_MODES.indexOf(child) <= SANDBOX_MODES.indexOf(parent) ? child : parent;
}

function isMode(name: string): name is SandboxMode {
  return SANDBOX_MODES.some((mode) => mode === name);
}

/** The child's policy where it lets nothing happen with less asking than the parent's, else the parent's. */
function narrowApproval(parent: SessionAuthority, child: SessionAuthority): ApprovalPolicy {
  const isNoWeaker = situations.every((situation) => {
    const freedoms = freedomsUnder(child, situation);
    return freedomsUnder(parent, situation).every((freedom, at) => (freedoms[at] ?? 0) <= freedom);
  });
  return isNoWeaker ? child.approvalPolicy : parent.approvalPolicy;
}

const risks: readonly CommandRisk[] = ["safe", "dangerous", "other"];
const situations = risks.flatMap((risk) =>
  [false, true].map((isEscalationAsked) => ({ risk, isEscalationAsked, canEscalate: true })),
);

/** How freely a command starts, and is done again outside: 0 never, 1 when a person says so, 2 always. */
function freedomsUnder(
  { approvalPolicy: policy, sandboxMode }: SessionAuthority,
  situation: (typeof situations)[number],
): [start: number, again: number] {
  const isRestricted = sandboxMode !== "danger-full-access";
  const decision = decideCommand({ ...situation, policy, isRestricted });
  const start = { refuse: 0, ask: 1, run: 2 }[decision.kind];
  // With full access everything is outside from the start.
  if (!isRestricted) return [start, start];
  const again = decideAfterDenial("command", { policy, isRestricted, canEscalate: true });
  const leaves = decision.kind === "ask" && decision.place === "escalated";
  return [start, leaves || again !== "stands" ? 1 : 0];
}

function narrowNetwork(parent: NetworkAuthority, child: NetworkAuthority): NetworkPolicy {
  if (parent.kind === "none" || child.kind === "none") return { kind: "none" };
  if (child.kind === "full") return copied(parent);
  if (parent.kind === "full") return copied(child);
  const hosts = child.hosts.filter((host) => parent.hosts.some((allowed) => coversHost(allowed, host)));
  return hosts.length === 0 ? { kind: "none" } : { kind: "allowlist", hosts };
}

function copied(network: NetworkAuthority): NetworkPolicy {
  return network.kind === "allowlist" ? { kind: "allowlist", hosts: [...network.hosts] } : network;
}

/** Whether a directory is within the parent's writable ones, and in none that is protected there. */
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

function differences(wanted: SessionAuthority, given: SessionAuthority): string[] {
  const parts: readonly [keyof SessionAuthority, string][] = [
    ["sandboxMode", "sandbox mode"],
    ["approvalPolicy", "approval policy"],
    ["network", "network"],
    ["writableRoots", "writable directories"],
    ["tools", "tools"],
  ];
  return parts.flatMap(([key, name]) =>
    JSON.stringify(wanted[key]) === JSON.stringify(given[key]) ? [] : [name],
  );
}
