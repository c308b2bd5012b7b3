import type { ApprovalPolicy } from "./approval-policy.js";
import type { CommandRisk } from "./command-safety/command-risk.js";

/** What has to be known to decide whether a command starts, and where. */
export interface CommandSituation {
  policy: ApprovalPolicy;
  risk: CommandRisk;
  /** Whether the session's own sandbox holds commands back; false for full access. */
  isRestricted: boolean;
  /** Whether the model asks to leave the sandbox. */
  isEscalationAsked: boolean;
  /** Whether there can be a second sandbox, with full access. */
  canEscalate: boolean;
}

/** What is done with an action before it starts. */
export type Decision =
  | { kind: "run" }
  | { kind: "ask"; place: "sandbox" | "escalated" }
  | { kind: "refuse"; cause: RefusalCause };

export type RefusalCause =
  /** Leaving the sandbox is asked for under a policy that has no such question. */
  | "escalation"
  /** There is nothing to leave the sandbox for. */
  | "no-escalation"
  /** It looks dangerous, and nobody may be asked. */
  | "dangerous"
  /** It would have to be asked about, and the granular policy says no to that. */
  | "granular"
  /** It would have to be asked about, and nobody is there. */
  | "nobody";

/** What is done after a first attempt in the sandbox that the sandbox made fail. */
export type DenialDecision = "stands" | "ask";

/**
 * The decision about a command. Beyond Codex's table: a safe command whose model asks to leave the sandbox is asked about like any
 * other, since what is safe inside a sandbox, such as git in a folder with a configuration of the model's, is not so outside.
 */
export function decideCommand(situation: CommandSituation): Decision {
  const { policy, risk, isRestricted, isEscalationAsked, canEscalate } = situation;
  if (isEscalationAsked && policy !== "on-request") return { kind: "refuse", cause: "escalation" };
  if (isEscalationAsked && isRestricted)
    return canEscalate ? { kind: "ask", place: "escalated" } : { kind: "refuse", cause: "no-escalation" };
  if (risk === "safe") return { kind: "run" };
  const asks = risk === "dangerous" || policy === "untrusted";
  if (!asks) return { kind: "run" };
  if (policy === "never") return isRestricted ? { kind: "refuse", cause: "dangerous" } : { kind: "run" };
  return asked(policy);
}

/** A patch changes files and nothing else: the sandbox decides which, so only `untrusted` asks before. */
export function decidePatch(policy: ApprovalPolicy): Decision {
  return policy === "untrusted" ? asked(policy) : { kind: "run" };
}

/**
 * The decision about a second attempt, in the sandbox with full access. It is always a question: that the sandbox made a command fail
 * is read from what the command printed, and a command can print anything, so an approval of the first attempt is none of the second.
 */
export function decideAfterDenial(
  kind: "command" | "patch",
  { policy, isRestricted, canEscalate }: Pick<CommandSituation, "policy" | "isRestricted" | "canEscalate">,
): DenialDecision {
  return isRestricted && canEscalate && mayEscalateAfterDenial(kind, policy) ? "ask" : "stands";
}

function mayEscalateAfterDenial(kind: "command" | "patch", policy: ApprovalPolicy): boolean {
  if (typeof policy === "object") return policy.granular.sandbox_approval;
  return policy === "untrusted" || policy === "on-failure" || (kind === "patch" && policy === "on-request");
}

function asked(policy: ApprovalPolicy): Decision {
  if (typeof policy === "object" && !policy.granular.sandbox_approval)
    return { kind: "refuse", cause: "granular" };
  return { kind: "ask", place: "sandbox" };
}

/** What brig tells a person of why it asks for a second attempt. */
export const RETRY_REASON = "command failed; retry without sandbox?";

/** What to answer a model that asks to leave the sandbox where that is no question; null where it may ask. */
export function escalationRefusal(policy: ApprovalPolicy, tool: string): string | null {
  return policy === "on-request" ? null : refusalText("escalation", { policy, tool, command: "" });
}

/** What the model is told of a refusal. `command` is the command as it is shown. */
export function refusalText(
  cause: RefusalCause,
  { policy, tool, command }: { policy: ApprovalPolicy; tool: string; command: string },
): string {
  switch (cause) {
    case "escalation": {
      const verb = tool === "exec_command" ? "cannot" : "should not";
      const name = codexNameOf(policy);
      return `approval policy is ${name}; reject command — you ${verb} ask for escalated permissions if the approval policy is ${name}`;
    }
    case "no-escalation":
      return "this session has no sandbox with full access; reject command — run it without require_escalated";
    case "dangerous":
      return `\`${command}\` rejected: rm -f style commands are not permitted. Use a safer approach`;
    case "granular":
      return "approval required by policy, but AskForApproval::Granular.sandbox_approval is false";
    case "nobody":
      return "approval required by policy, but nobody is there to approve it";
    default:
      return cause satisfies never;
  }
}

const codexNames = {
  untrusted: "UnlessTrusted",
  "on-failure": "OnFailure",
  "on-request": "OnRequest",
  never: "Never",
} as const;

function codexNameOf(policy: ApprovalPolicy): string {
  return typeof policy === "string" ? codexNames[policy] : "Granular";
}
