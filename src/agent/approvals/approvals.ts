import { BrigError } from "../../errors.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import type { CommandSituation } from "../../sandbox/index.js";
import {
  decideAfterDenial,
  decideCommand,
  decideMcpCall,
  decidePatch,
  escalationRefusal,
  prefixToOffer,
  RETRY_REASON,
  refusalText,
  riskOf,
} from "../../sandbox/index.js";
import type {
  ActionReview,
  ActionToReview,
  AnsweredApproval,
  ApprovalQuestion,
  DeniedAttempt,
  SandboxPlace,
  SecondVerdict,
  ToolCallOptions,
  Verdict,
} from "../../tools/index.js";
import { shellQuote } from "../../tools/index.js";
import type { AgentLabel } from "../agents/agent-label.js";
import { Grants } from "./approval-grants.js";
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

/** Decides about actions by the policy, a person's answers, and earlier approvals for the session. */
export class SessionApprovals implements ActionReview {
  readonly #options: ApprovalOptions;
  readonly #grants = new Grants();
  readonly #queue = new QuestionQueue();

  constructor(options: ApprovalOptions) {
    this.#options = options;
  }

  escalationRefusal(tool: string): string | null {
    return escalationRefusal(this.#options.situation.policy, tool);
  }

  async review(action: ActionToReview, call: ToolCallOptions): Promise<Verdict> {
    const { situation } = this.#options;
    const decision = decide(action, situation);
    switch (decision.kind) {
      case "run":
        return { kind: "run", place: "sandbox" };
      case "refuse":
        return refusal(decision.cause, { action, situation });
      case "ask": {
        const { place } = decision;
        const prefix = prefixOf(action, place);
        const answer = await this.#answerTo({ action, place, reason: null, denial: null, prefix }, call);
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
    call: ToolCallOptions,
  ): Promise<SecondVerdict> {
    const { situation } = this.#options;
    if (action.kind === "mcp-call") return "stands";
    if (decideAfterDenial(action.kind, situation) === "stands") return "stands";
    const denial = findDenial(situation);
    if (denial === null) return "stands";
    const place = "escalated";
    const prefix = prefixOf(action, place);
    const question = { action, place, reason: RETRY_REASON, denial, prefix } as const;
    const answer = await this.#answerTo(question, call);
    if (answer === "nobody") return "stands";
    return answer === "approved" ? "run-escalated" : "stands-by-user";
  }

  /** Uses an earlier answer, or asks. Questions are asked one at a time, in the order of their calls. */
  async #answerTo(
    question: ApprovalQuestion,
    call: ToolCallOptions,
  ): Promise<"approved" | "denied" | "nobody"> {
    const { approver } = this.#options;
    if (this.#grants.has(question)) return "approved";
    if (approver === undefined) return "nobody";
    const startedAt = performance.now();
    const { signal, origin } = call;
    return await this.#queue.inTurn({ position: origin?.position ?? 0, signal }, async () => {
      if (this.#grants.has(question)) return "approved";
      call.onActivity?.({ kind: "approval-requested", ...question });
      let answer: AnsweredApproval = "withdrawn";
      try {
        const request = { ...question, callId: origin?.callId ?? null };
        const asked = approver.ask(request, { signal });
        answer = this.#take(await beforeAbort(asked, signal), question);
      } finally {
        const waitedMs = performance.now() - startedAt;
        call.onActivity?.({ kind: "approval-answered", ...question, answer, waitedMs });
      }
      if (answer === "abort") throw new BrigError("the user ended the turn", { code: "aborted" });
      return answer === "denied" ? "denied" : "approved";
    });
  }

  /** Remembers what is approved for the session. */
  #take(answer: ApprovalAnswer, question: ApprovalQuestion): AnsweredApproval {
    if (answer === "approved_for_session") this.#grants.addAction(question);
    if (typeof answer === "string") return answer;
    const isOffered =
      question.prefix !== null && JSON.stringify(answer.approvedPrefix) === JSON.stringify(question.prefix);
    if (!isOffered) return "approved";
    this.#grants.addPrefix(answer.approvedPrefix, question.place);
    return "approved_prefix";
  }
}

function decide(action: ActionToReview, situation: ApprovalSituation) {
  if (action.kind === "patch") return decidePatch(situation.policy);
  if (action.kind === "mcp-call") return decideMcpCall({ ...situation, ...action });
  const { argv, escalation } = action;
  return decideCommand({ ...situation, risk: riskOf(argv), isEscalationAsked: escalation.isAsked });
}

function prefixOf(action: ActionToReview, place: SandboxPlace): readonly string[] | null {
  if (action.kind !== "command" || action.takesInput) return null;
  return prefixToOffer(action.argv, { proposed: action.escalation.prefixRule, place });
}

function refusal(
  cause: Parameters<typeof refusalText>[0],
  { action, situation: { policy } }: { action: ActionToReview; situation: ApprovalSituation },
): Verdict {
  const { tool } = action;
  const command = action.kind === "command" ? shellQuote(action.argv) : tool;
  return { kind: "refused", reason: { by: "policy", text: refusalText(cause, { policy, tool, command }) } };
}
