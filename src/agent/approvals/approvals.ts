import { BrigError } from "../../errors.js";
import { shellQuote } from "../../lib/shell-quote.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import type { CommandSituation } from "../../sandbox/index.js";
import {
  decideAfterDenial,
  decideCommand,
  decideMcpCall,
  decidePatch,
  escalationRefusal,
  RETRY_REASON,
  refusalText,
} from "../../sandbox/index.js";
import type {
  ActionReview,
  ActionToReview,
  AnsweredApproval,
  ApprovalQuestion,
  CommandPrefix,
  CommandSafety,
  DeniedAttempt,
  ReviewedCall,
  SandboxPlace,
  SecondVerdict,
  Verdict,
} from "../../tools/index.js";
import { ReadCommand } from "../../tools/index.js";
import type { AgentLabel } from "../agents/agent-label.js";
import type { SessionSetting } from "../session/setting.js";
import { QuestionQueue } from "./question-queue.js";

/** A question to a person. */
export interface ApprovalRequest extends ApprovalQuestion {
  /** The model's call that needs approval; null if a program called the tool. */
  callId: string | null;
  /** The agent that asks. Default: the session itself. */
  agent?: AgentLabel | undefined;
}

/** The person's answer. */
export type ApprovalAnswer =
  | "approved"
  | "approved_for_session"
  /** Approves all commands with this prefix. A prefix that was not offered approves only this command. */
  | { approvedPrefix: readonly string[] }
  | "denied"
  /** Denies the action and ends the turn. */
  | "abort";

/** Answers the questions of the session's approval policy. */
export interface Approver {
  /** Called for one question at a time. Withdraw the question when the signal aborts; nobody waits for it. */
  ask(request: ApprovalRequest, options: { signal: AbortSignal | undefined }): Promise<ApprovalAnswer>;
}

export interface ApprovalSituation extends Pick<CommandSituation, "policy" | "isRestricted" | "canEscalate"> {
  /**
   * Whether the session's sandbox has a network. Without one, the sandbox is why a network is unreachable.
   */
  hasNetwork: boolean;
}

interface ApprovalOptions {
  situation: ApprovalSituation;
  /** Default: none; what would be asked is refused. */
  approver?: Approver | undefined;
}

/** What a session's setting says about approvals. */
export function situationIn(
  { sandboxMode, approvalPolicy = "never", network }: SessionSetting,
  { canEscalate }: Pick<ApprovalSituation, "canEscalate">,
): ApprovalSituation {
  return {
    policy: approvalPolicy,
    isRestricted: sandboxMode !== "danger-full-access",
    canEscalate,
    hasNetwork: network.kind !== "none",
  };
}

/** Decides about actions by the policy, a person's answers, and earlier approvals for the session. */
export class SessionApprovals implements ActionReview {
  readonly #approver: Approver | undefined;
  readonly #queue = new QuestionQueue();
  #situation: ApprovalSituation;
  #grants = new Grants();

  constructor({ situation, approver }: ApprovalOptions) {
    this.#situation = situation;
    this.#approver = approver;
  }

  /** Forgets the approvals so far, because they were given for the old situation. */
  change(situation: ApprovalSituation): void {
    this.#situation = situation;
    this.#grants = new Grants();
  }

  escalationRefusal(tool: string): string | null {
    return escalationRefusal(this.#situation.policy, tool);
  }

  async review(action: ActionToReview, call: ReviewedCall): Promise<Verdict> {
    const situation = this.#situation;
    const safety = await safetyOf(action, call);
    const decision = decide({ action, safety }, situation);
    switch (decision.kind) {
      case "run":
        return { kind: "run", place: "sandbox" };
      case "refuse":
        return refusal(decision.cause, { action, situation });
      case "ask": {
        const { place } = decision;
        const prefix = prefixOf({ action, safety }, place);
        const question = { action, place, reason: null, denial: null, prefix };
        const answer = await this.#answerTo({ question, safety }, call);
        if (answer === "nobody") return refusal("nobody", { action, situation });
        return answer === "approved" ? { kind: "run", place } : { kind: "refused", reason: { by: "user" } };
      }
      default:
        return decision satisfies never;
    }
  }

  async reviewFailure(
    action: ActionToReview,
    { findDenial }: DeniedAttempt,
    call: ReviewedCall,
  ): Promise<SecondVerdict> {
    const situation = this.#situation;
    if (action.kind === "mcp-call") return "stands";
    if (decideAfterDenial(action.kind, situation) === "stands") return "stands";
    const denial = findDenial(situation);
    if (denial === null) return "stands";
    const place = "escalated";
    const safety = await safetyOf(action, call);
    const prefix = prefixOf({ action, safety }, place);
    const question = { action, place, reason: RETRY_REASON, denial, prefix } as const;
    const answer = await this.#answerTo({ question, safety }, call);
    if (answer === "nobody") return "stands";
    return answer === "approved" ? "run-escalated" : "stands-by-user";
  }

  /** Uses an earlier answer, or asks. Questions are asked one at a time, in the order of their calls. */
  async #answerTo(
    { question, safety }: { question: ApprovalQuestion; safety: CommandSafety | null },
    call: ReviewedCall,
  ): Promise<"approved" | "denied" | "nobody"> {
    const approver = this.#approver;
    const asked = { ...question, safety };
    // An answer does not count for a situation that has replaced this one meanwhile.
    const grants = this.#grants;
    if (grants.has(asked)) return "approved";
    if (approver === undefined) return "nobody";
    const startedAt = performance.now();
    const { signal, origin } = call;
    return await this.#queue.inTurn({ position: origin?.position ?? 0, signal }, async () => {
      if (grants.has(asked)) return "approved";
      call.onActivity?.({ kind: "approval-requested", ...question });
      let answer: AnsweredApproval = "withdrawn";
      try {
        const request = { ...question, callId: origin?.callId ?? null };
        const answering = approver.ask(request, { signal });
        answer = take(await beforeAbort(answering, signal), asked, grants);
      } finally {
        const waitedMs = performance.now() - startedAt;
        call.onActivity?.({ kind: "approval-answered", ...question, answer, waitedMs });
      }
      if (answer === "abort") throw new BrigError("the user ended the turn", { code: "aborted" });
      return answer === "denied" ? "denied" : "approved";
    });
  }
}

/** Remembers what is approved for the session. */
function take(
  answer: ApprovalAnswer,
  asked: Grantable & Pick<ApprovalQuestion, "prefix">,
  grants: Grants,
): AnsweredApproval {
  if (answer === "approved_for_session") grants.addAction(asked);
  if (typeof answer === "string") return answer;
  const { prefix, place } = asked;
  const isOffered = prefix !== null && JSON.stringify(answer.approvedPrefix) === JSON.stringify(prefix);
  if (!isOffered) return "approved";
  grants.addPrefix(answer.approvedPrefix, place);
  return "approved_prefix";
}

/**
 * What the command of an action could do; null for an action that is no command. The tool has read it already. What
 * people are shown decides, so another command than that is read again.
 */
async function safetyOf(action: ActionToReview, { command }: ReviewedCall): Promise<CommandSafety | null> {
  if (action.kind !== "command") return null;
  const read = command?.argv === action.argv ? command : new ReadCommand(action.argv);
  return await read.safety();
}

interface JudgedAction {
  action: ActionToReview;
  /** What the command could do; null for an action that is no command. */
  safety: CommandSafety | null;
}

function decide({ action, safety }: JudgedAction, situation: ApprovalSituation) {
  if (action.kind === "patch") return decidePatch(situation.policy);
  if (action.kind === "mcp-call") return decideMcpCall({ ...situation, ...action });
  const { isAsked: isEscalationAsked } = action.escalation;
  return decideCommand({ ...situation, risk: safety?.risk ?? "dangerous", isEscalationAsked });
}

function prefixOf({ action, safety }: JudgedAction, place: SandboxPlace): readonly string[] | null {
  if (action.kind !== "command" || action.takesInput) return null;
  return safety?.prefixToOffer({ proposed: action.escalation.prefixRule, place }) ?? null;
}

function refusal(
  cause: Parameters<typeof refusalText>[0],
  { action, situation: { policy } }: { action: ActionToReview; situation: ApprovalSituation },
): Verdict {
  const { tool } = action;
  const command = action.kind === "command" ? shellQuote(action.argv) : tool;
  return { kind: "refused", reason: { by: "policy", text: refusalText(cause, { policy, tool, command }) } };
}

/** An approval in one place does not count in the other. */
interface Grantable extends JudgedAction {
  place: SandboxPlace;
}

/** Approvals of a person for the rest of the session, or until its setting changes. */
class Grants {
  readonly #keys = new Set<string>();
  readonly #prefixes: { prefix: CommandPrefix; place: SandboxPlace }[] = [];

  /** Whether the question is already answered. */
  has({ action, safety, place }: Grantable): boolean {
    const keys = keysOf({ action, safety, place });
    if (keys.length > 0 && keys.every((key) => this.#keys.has(key))) return true;
    // Whoever approved a prefix did not approve the input that the agent may later write to the command.
    if (action.kind !== "command" || action.takesInput || safety === null) return false;
    const granted = this.#prefixes.filter((grant) => order.indexOf(grant.place) >= order.indexOf(place));
    return safety.isCovered(
      granted.map(({ prefix }) => prefix),
      place,
    );
  }

  /**
   * Remembers an approval for the session. For a command, it covers the same command in the same directory;
   * for a patch, every patch of the same files; for a call of an MCP server, every call of the same tool.
   */
  addAction(asked: Grantable): void {
    for (const key of keysOf(asked)) this.#keys.add(key);
  }

  addPrefix(prefix: CommandPrefix, place: SandboxPlace): void {
    this.#prefixes.push({ prefix, place });
  }
}

const order: readonly SandboxPlace[] = ["sandbox", "escalated"];

function keysOf({ action, safety, place }: Grantable): string[] {
  if (action.kind === "mcp-call") return [JSON.stringify([place, "mcp", action.server, action.name])];
  if (action.kind === "patch") return action.changes.map(({ path }) => JSON.stringify([place, path]));
  const { argv, cwd, takesInput } = action;
  return [JSON.stringify([place, cwd, takesInput, safety?.single ?? argv])];
}
