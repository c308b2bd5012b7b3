import { decideAfterDenial, decideCommand, decidePatch } from "./approval-decision.js";
import type { ApprovalPolicy } from "./approval-policy.js";
import type { CommandRisk } from "./command-safety/command-risk.js";
import { isSandboxMode, SANDBOX_MODES } from "./modes.js";
import { coversHost } from "./network.js";

/** How one setting compares with another: `incomparable` where each allows something that the other does not, or nobody can tell. */
export type Strictness = "same" | "stricter" | "looser" | "incomparable";

/** A network setting, whoever wrote its list of hosts. */
export type NetworkScope =
  | { kind: "none" }
  | { kind: "full" }
  | { kind: "allowlist"; hosts: readonly string[] };

/** Whether somebody with the second setting gives up nothing by letting another have the first. */
export function isNoLooser(strictness: Strictness): boolean {
  return strictness === "same" || strictness === "stricter";
}

/** Of two modes, or paths of policy files: what a file allows is unknown, except that it is less than full access. */
export function compareModes(mode: string, other: string): Strictness {
  if (mode === other) return "same";
  if (other === "danger-full-access") return "stricter";
  if (mode === "danger-full-access") return "looser";
  if (!isSandboxMode(mode) || !isSandboxMode(other)) return "incomparable";
  return SANDBOX_MODES.indexOf(mode) < SANDBOX_MODES.indexOf(other) ? "stricter" : "looser";
}

/** An approval policy and the modes, or policy files, that it may come to apply under. */
export interface Approvals {
  policy: ApprovalPolicy;
  modes: readonly string[];
}

/**
 * Of two approval policies: stricter is what lets no action start, or leave the sandbox, with less asking than the other, and some with
 * more or not at all. A refusal is stricter than a question, and a question stricter than none.
 *
 * The mode decides about `never`. In a sandbox it is stricter than `on-request`: both let ordinary commands run unasked, and what
 * `on-request` asks about, `never` refuses. With full access it is looser: there it runs even what looks dangerous. A sub-session is
 * compared under the modes that it and its parent have, and again before its mode changes, so it may have `never` under a parent that
 * asks. A configuration outlives its mode, since a person can change that in the middle of a conversation, so for a project's own
 * file only what is stricter under every mode counts, and `never` is not. It is never comparable with `untrusted`, which asks about
 * ordinary commands, and lets a person say yes to leaving the sandbox.
 *
 * Two that allow the same and ask at different moments, such as `on-request` and `on-failure`, are incomparable: neither tightens the
 * other, and who chose one of them chose when to be asked.
 */
export function compareApprovals(approvals: Approvals, others: Approvals): Strictness {
  const freedoms = freedomsOf(approvals);
  const otherFreedoms = freedomsOf(others);
  const isNeverFreer = freedoms.every((freedom, at) => freedom <= (otherFreedoms[at] ?? 0));
  const isNeverStricter = freedoms.every((freedom, at) => freedom >= (otherFreedoms[at] ?? 0));
  if (isNeverFreer && isNeverStricter)
    return isSamePolicy(approvals.policy, others.policy) ? "same" : "incomparable";
  if (isNeverFreer) return "stricter";
  return isNeverStricter ? "looser" : "incomparable";
}

/** Of two network settings, by the hosts that they let through. */
export function compareNetworks(network: NetworkScope, other: NetworkScope): Strictness {
  const isWithinOther = isWithin(network, other);
  if (isWithin(other, network)) return isWithinOther ? "same" : "looser";
  return isWithinOther ? "stricter" : "incomparable";
}

function isWithin(inner: NetworkScope, outer: NetworkScope): boolean {
  if (inner.kind === "none" || outer.kind === "full") return true;
  if (inner.kind === "full" || outer.kind === "none") return false;
  return inner.hosts.every((host) => outer.hosts.some((allowed) => coversHost(allowed, host)));
}

/** How freely something happens: 0 never, 1 when a person says so, 2 always. */
type Freedom = 0 | 1 | 2;

/** Always in the same order, so that those of two policies can be compared one by one. */
function freedomsOf({ policy, modes }: Approvals): Freedom[] {
  const ofActions = modes.flatMap((mode) => {
    const isRestricted = mode !== "danger-full-access";
    const ofCommands = risks.flatMap((risk) => commandFreedoms({ policy, isRestricted, risk }));
    return [...ofCommands, ...patchFreedoms({ policy, isRestricted })];
  });
  return [...ofActions, ...questionFreedoms(policy)];
}

const risks: readonly CommandRisk[] = ["safe", "dangerous", "other"];

interface Situation {
  policy: ApprovalPolicy;
  isRestricted: boolean;
}

/** How freely a command starts, and gets outside of the sandbox. The model chooses whether it asks for that: the freer way counts. */
function commandFreedoms(situation: Situation & { risk: CommandRisk }): [start: Freedom, outside: Freedom] {
  const decide = (isEscalationAsked: boolean) =>
    decideCommand({ ...situation, isEscalationAsked, canEscalate: true });
  const decisions = [decide(false), decide(true)];
  const start = Math.max(...decisions.map(({ kind }) => freedomOf[kind])) as Freedom;
  const asksToLeave = decisions.some((one) => one.kind === "ask" && one.place === "escalated");
  return [start, outside("command", { ...situation, start, asksToLeave })];
}

function patchFreedoms(situation: Situation): [start: Freedom, outside: Freedom] {
  const start = freedomOf[decidePatch(situation.policy).kind];
  return [start, outside("patch", { ...situation, start, asksToLeave: false })];
}

const freedomOf = { refuse: 0, ask: 1, run: 2 } as const;

function outside(
  kind: "command" | "patch",
  { start, asksToLeave, ...situation }: Situation & { start: Freedom; asksToLeave: boolean },
): Freedom {
  // With full access everything is outside from the start.
  if (!situation.isRestricted) return start;
  const again = decideAfterDenial(kind, { ...situation, canEscalate: true });
  return asksToLeave || again === "ask" ? 1 : 0;
}

/** What only granular policies tell apart, and other policies have no such question about. */
const questionKinds = ["rules", "skill_approval", "request_permissions", "mcp_elicitations"] as const;

function questionFreedoms(policy: ApprovalPolicy): Freedom[] {
  return questionKinds.map((kind) => (typeof policy === "object" && policy.granular[kind] ? 1 : 0));
}

function isSamePolicy(policy: ApprovalPolicy, other: ApprovalPolicy): boolean {
  if (typeof policy === "string" || typeof other === "string") return policy === other;
  return (
    policy.granular.sandbox_approval === other.granular.sandbox_approval &&
    questionKinds.every((kind) => policy.granular[kind] === other.granular[kind])
  );
}
