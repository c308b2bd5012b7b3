import type { ApprovalPolicy } from "./approval-policy.js";

/** The harm that a command could do, judging by its text. */
export type CommandRisk =
  /** It only reads. */
  | "safe"
  /** It could destroy something for good. */
  | "dangerous"
  | "other";

/** Everything that the decision about a command depends on. */
export interface CommandSituation {
  policy: ApprovalPolicy;
  risk: CommandRisk;
  /** False with full access. */
  isRestricted: boolean;
  /** Whether the model asks to run the command outside of the sandbox. */
  isEscalationAsked: boolean;
  /** Whether a second sandbox, with full access, is available. */
  canEscalate: boolean;
}

export type Decision =
  | { kind: "run" }
  | { kind: "ask"; place: "sandbox" | "escalated" }
  | { kind: "refuse"; cause: RefusalCause };

export type RefusalCause =
  /** The model asks to leave the sandbox, and the policy does not allow that question. */
  | "escalation"
  /** The model asks to leave the sandbox, and there is no second one. */
  | "no-escalation"
  /** It looks dangerous, and the policy never asks. */
  | "dangerous"
  /** It needs approval, and the granular policy refuses such questions. */
  | "granular"
  /** It is a call of an MCP server, it needs approval, and the granular policy refuses such questions. */
  | "granular-mcp"
  /** It needs approval, and nobody is there to ask. */
  | "nobody";

/** Whether to ask for a second attempt after the sandbox made the first one fail. */
export type DenialDecision = "stands" | "ask";

/**
 * Decides about a command. Stricter than Codex in one case: a safe command that is to leave the sandbox needs
 * approval like any other. What is safe inside, such as git with a configuration that the model wrote, is not
 * safe outside.
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
  return askOrRefuse(policy);
}

/** A patch only changes files, and the sandbox decides which, so only `untrusted` asks first. */
export function decidePatch(policy: ApprovalPolicy): Decision {
  return policy === "untrusted" ? askOrRefuse(policy) : { kind: "run" };
}

/** Everything that the decision about a call of an MCP server's tool depends on. */
export interface McpCallSituation {
  policy: ApprovalPolicy;
  /** False with full access. */
  isRestricted: boolean;
  /** `auto`: by what the server says about the tool; `prompt`: always ask; `approve`: never ask. */
  approval: "auto" | "prompt" | "approve";
  /** A hint that the server does not give is null. */
  annotations: { readOnly: boolean | null; destructive: boolean | null; openWorld: boolean | null };
}

/**
 * Decides about a call of an MCP server's tool, as Codex does. A call never leads to another sandbox, because
 * the server runs where its configuration says. Under the policy `never`, every tool may be called.
 */
export function decideMcpCall({ policy, isRestricted, approval, annotations }: McpCallSituation): Decision {
  const asks = approval === "prompt" || (approval === "auto" && mayDoHarm(annotations));
  if (!asks || policy === "never" || !isRestricted) return { kind: "run" };
  if (typeof policy === "object" && !policy.granular.mcp_elicitations)
    return { kind: "refuse", cause: "granular-mcp" };
  return { kind: "ask", place: "sandbox" };
}

/** A hint that the server does not give counts as the worse answer. */
function mayDoHarm({ readOnly, destructive, openWorld }: McpCallSituation["annotations"]): boolean {
  if (destructive === true) return true;
  return readOnly !== true && ((destructive ?? true) || (openWorld ?? true));
}

/**
 * Decides about a second attempt, in the sandbox with full access. It always needs a question: that the
 * sandbox made the command fail is a guess from its output, which can be anything, so an approval of the
 * first attempt does not count.
 */
export function decideAfterDenial(
  kind: "command" | "patch",
  { policy, isRestricted, canEscalate }: Pick<CommandSituation, "policy" | "isRestricted" | "canEscalate">,
): DenialDecision {
  return isRestricted && canEscalate && mayAskAfterDenial(kind, policy) ? "ask" : "stands";
}

function mayAskAfterDenial(kind: "command" | "patch", policy: ApprovalPolicy): boolean {
  if (typeof policy === "object") return policy.granular.sandbox_approval;
  return policy === "untrusted" || policy === "on-failure" || (kind === "patch" && policy === "on-request");
}

function askOrRefuse(policy: ApprovalPolicy): Decision {
  if (typeof policy === "object" && !policy.granular.sandbox_approval)
    return { kind: "refuse", cause: "granular" };
  return { kind: "ask", place: "sandbox" };
}

export const RETRY_REASON = "command failed; retry without sandbox?";

/** The answer to a model that may not even ask to leave the sandbox; else null. */
export function escalationRefusal(policy: ApprovalPolicy, tool: string): string | null {
  return policy === "on-request" ? null : refusalText("escalation", { policy, tool, command: "" });
}

/** The text for the model. `command` is the command as it is displayed. */
export function refusalText(
  cause: RefusalCause,
  { policy, tool, command }: { policy: ApprovalPolicy; tool: string; command: string },
): string {
  switch (cause) {
    case "escalation": {
      const verb = tool === "exec_command" ? "cannot" : "should not";
      const name = typeof policy === "string" ? codexNames[policy] : "Granular";
      return `approval policy is ${name}; reject command — you ${verb} ask for escalated permissions if the approval policy is ${name}`;
    }
    case "no-escalation":
      return "this session has no sandbox with full access; reject command — run it without require_escalated";
    case "dangerous":
      return `\`${command}\` rejected: rm -f style commands are not permitted. Use a safer approach`;
    case "granular":
      return "approval required by policy, but AskForApproval::Granular.sandbox_approval is false";
    case "granular-mcp":
      return "approval required by policy, but AskForApproval::Granular.mcp_elicitations is false";
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
