import type { CommandRisk } from "./approval-decision.js";
import { decideAfterDenial, decideCommand, decideMcpCall, decidePatch } from "./approval-decision.js";
import type { ApprovalPolicy } from "./approval-policy.js";
import { isSandboxMode, SANDBOX_MODES } from "./modes.js";
import { isWithinNetwork, type NetworkScope } from "./network.js";

/** `incomparable`: each allows something that the other does not, or it is not known. */
export type Strictness = "same" | "stricter" | "looser" | "incomparable";

export function isNoLooser(strictness: Strictness): boolean {
  return strictness === "same" || strictness === "stricter";
}

/** All that is known of a policy file is that it allows less than full access. */
export function compareModes(mode: string, other: string): Strictness {
  if (mode === other) return "same";
  if (other === "danger-full-access") return "stricter";
  if (mode === "danger-full-access") return "looser";
  if (!isSandboxMode(mode) || !isSandboxMode(other)) return "incomparable";
  return SANDBOX_MODES.indexOf(mode) < SANDBOX_MODES.indexOf(other) ? "stricter" : "looser";
}

/** An approval policy, and the modes or policy files under which it may apply. */
export interface Approvals {
  policy: ApprovalPolicy;
  modes: readonly string[];
}

/**
 * Compares approval policies. The stricter one lets no action start, or leave the sandbox, with fewer
 * questions than the other, and some with more or not at all. A refusal is stricter than a question, and a
 * question is stricter than none.
 *
 * `never` depends on the mode. In a sandbox it is stricter than `on-request`: both run ordinary commands
 * without a question, and `never` refuses what `on-request` asks about. With full access it is looser: it
 * even runs what looks dangerous. A sub-session is compared under its own and its parent's mode, and again
 * before its mode changes, so it may have `never` under a parent that asks. A configuration has to hold under
 * every mode, since a person can change the mode in a conversation. So in a project's configuration `never`
 * is not stricter. It is incomparable with `untrusted`, which asks about ordinary commands but lets a person
 * allow leaving the sandbox.
 *
 * With `hasMcpServers`, the calls and the questions of MCP servers count as well. `never` lets every call of
 * a server run, in each mode, so in this respect it is looser than a policy that asks.
 *
 * Policies that allow the same and ask at different moments, such as `on-request` and `on-failure`, are
 * incomparable: choosing one of them is choosing when to be asked.
 */
export function compareApprovals(
  approvals: Approvals,
  others: Approvals,
  { hasMcpServers }: { hasMcpServers: boolean },
): Strictness {
  const ofActions = compareFreedoms(freedomsOf(approvals), freedomsOf(others));
  const isEqualFreedom = ofActions === "same" && !isSamePolicy(approvals.policy, others.policy);
  const actions = isEqualFreedom ? "incomparable" : ofActions;
  if (!hasMcpServers) return actions;
  return both(actions, compareFreedoms(serverFreedomsOf(approvals), serverFreedomsOf(others)));
}

function compareFreedoms(freedoms: readonly Freedom[], others: readonly Freedom[]): Strictness {
  const isNeverFreer = freedoms.every((freedom, at) => freedom <= (others[at] ?? 0));
  const isNeverStricter = freedoms.every((freedom, at) => freedom >= (others[at] ?? 0));
  if (isNeverFreer) return isNeverStricter ? "same" : "stricter";
  return isNeverStricter ? "looser" : "incomparable";
}

function both(one: Strictness, other: Strictness): Strictness {
  if (one === other || other === "same") return one;
  return one === "same" ? other : "incomparable";
}

/** Compares network settings by the hosts that they allow. */
export function compareNetworks(network: NetworkScope, other: NetworkScope): Strictness {
  const isWithinOther = isWithinNetwork(network, other);
  if (isWithinNetwork(other, network)) return isWithinOther ? "same" : "looser";
  return isWithinOther ? "stricter" : "incomparable";
}

/** The freedom to do something: 0 never, 1 after a question, 2 always. */
type Freedom = 0 | 1 | 2;

/** Always in the same order, so that two policies can be compared element by element. */
function freedomsOf({ policy, modes }: Approvals): Freedom[] {
  const ofActions = modes.flatMap((mode) => {
    const isRestricted = mode !== "danger-full-access";
    const ofCommands = risks.flatMap((risk) => commandFreedom({ policy, isRestricted, risk }));
    return [...ofCommands, ...patchFreedom({ policy, isRestricted })];
  });
  return [...ofActions, ...questionFreedom(policy)];
}

const risks: readonly CommandRisk[] = ["safe", "dangerous", "other"];

interface Situation {
  policy: ApprovalPolicy;
  isRestricted: boolean;
}

/** The freedom of a command to start, and to leave the sandbox. If the model has a choice, the freer one counts. */
function commandFreedom(situation: Situation & { risk: CommandRisk }): [start: Freedom, outside: Freedom] {
  const decide = (isEscalationAsked: boolean) =>
    decideCommand({ ...situation, isEscalationAsked, canEscalate: true });
  const decisions = [decide(false), decide(true)];
  const start = Math.max(...decisions.map(({ kind }) => freedomOf[kind])) as Freedom;
  const asksToLeave = decisions.some((one) => one.kind === "ask" && one.place === "escalated");
  return [start, outside("command", { ...situation, start, asksToLeave })];
}

function patchFreedom(situation: Situation): [start: Freedom, outside: Freedom] {
  const start = freedomOf[decidePatch(situation.policy).kind];
  return [start, outside("patch", { ...situation, start, asksToLeave: false })];
}

const freedomOf = { refuse: 0, ask: 1, run: 2 } as const;

function outside(
  kind: "command" | "patch",
  { start, asksToLeave, ...situation }: Situation & { start: Freedom; asksToLeave: boolean },
): Freedom {
  // With full access every command is outside from the start.
  if (!situation.isRestricted) return start;
  const again = decideAfterDenial(kind, { ...situation, canEscalate: true });
  return asksToLeave || again === "ask" ? 1 : 0;
}

/**
 * The freedom to call a tool that needs approval, in each mode, and whether a server may ask the user
 * something.
 */
function serverFreedomsOf({ policy, modes }: Approvals): Freedom[] {
  const ofCalls = modes.map((mode) => {
    const isRestricted = mode !== "danger-full-access";
    const annotations = { readOnly: null, destructive: null, openWorld: null };
    return freedomOf[decideMcpCall({ policy, isRestricted, approval: "prompt", annotations }).kind];
  });
  const mayAsk = typeof policy === "string" || policy.granular.mcp_elicitations;
  return [...ofCalls, mayAsk ? 1 : 0];
}

/** Questions that only granular policies distinguish. Other policies never ask them. */
const questionKinds = ["rules", "skill_approval", "request_permissions"] as const;

function questionFreedom(policy: ApprovalPolicy): Freedom[] {
  return questionKinds.map((kind) => (typeof policy === "object" && policy.granular[kind] ? 1 : 0));
}

/** Whether two policies ask at the same moments. Questions of MCP servers are left out. */
function isSamePolicy(policy: ApprovalPolicy, other: ApprovalPolicy): boolean {
  if (typeof policy === "string" || typeof other === "string") return policy === other;
  return (
    policy.granular.sandbox_approval === other.granular.sandbox_approval &&
    questionKinds.every((kind) => policy.granular[kind] === other.granular[kind])
  );
}
