import { z } from "zod";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../../../../agent/index.js";
import { neutraliseLine } from "../../../../lib/terminal/terminal.js";
import type { AskedUser, UserQuestion } from "../../../../tools/index.js";
import type { CodexEvent } from "../events/codex-event.js";
import {
  approvalAnswer,
  approvalQuestion,
  type Elicitation,
  type QuestionOrigin,
} from "./approval-question.js";

/** Asks the client's user. Rejects if the client cannot or does not answer. */
export type Ask = (question: Elicitation, options: { signal: AbortSignal | undefined }) => Promise<unknown>;

/** The call that a turn serves. */
export interface Caller {
  requestId: string | number;
  signal: AbortSignal;
  onEvent(event: CodexEvent): void;
  /** Null if the client cannot ask its user. */
  ask: Ask | null;
}

/** Answers the questions of a session by asking whoever made the call that is running. */
export class CurrentCaller {
  /** Null between turns. */
  current: { caller: Caller; turnId: () => string } | null = null;
  readonly approver: Approver;
  readonly user: AskedUser;

  constructor(threadId: () => string) {
    this.approver = {
      ask: async (request, { signal }) => await this.#approval(request, threadId(), signal),
    };
    this.user = { ask: async (questions, { signal }) => await this.#answers(questions, threadId(), signal) };
  }

  async #approval(
    request: ApprovalRequest,
    threadId: string,
    signal: AbortSignal | undefined,
  ): Promise<ApprovalAnswer> {
    const reply = await this.#reply((origin) => approvalQuestion(request, origin), threadId, signal);
    return reply === null ? "denied" : approvalAnswer(reply, request);
  }

  async #answers(
    questions: readonly UserQuestion[],
    threadId: string,
    signal: AbortSignal | undefined,
  ): ReturnType<AskedUser["ask"]> {
    const reply = await this.#reply((origin) => userQuestion(questions, origin), threadId, signal);
    return reply === null ? null : userAnswers(reply, questions);
  }

  /** Null if there was no answer. Rejects if the signal aborts. */
  async #reply(
    question: (origin: QuestionOrigin) => Elicitation,
    threadId: string,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const { caller, turnId } = this.current ?? {};
    if (caller === undefined || turnId === undefined || caller.ask === null) return null;
    try {
      const origin = { threadId, turnId: turnId(), requestId: caller.requestId };
      return await caller.ask(question(origin), { signal });
    } catch {
      signal?.throwIfAborted();
      return null;
    }
  }
}

/**
 * Builds a form with the model's questions. The user can answer each with one of its choices or in other
 * words.
 */
function userQuestion(questions: readonly UserQuestion[], origin: QuestionOrigin): Elicitation {
  const fields = questions.map(({ id, header, question, options = [] }) => {
    const choices = options.map(({ label, description }) => `${line(label)}: ${line(description)}`);
    const description = [line(question), ...choices].join("\n");
    return [id, { type: "string", title: line(header), description }] as const;
  });
  return {
    message: questions.map(({ question }) => line(question)).join("\n"),
    requestedSchema: {
      type: "object",
      properties: Object.fromEntries(fields),
      required: fields.map(([id]) => id),
    },
    threadId: origin.threadId,
    codex_elicitation: "request-user-input",
    codex_mcp_tool_call_id: String(origin.requestId),
    codex_event_id: origin.turnId,
    codex_questions: questions,
  };
}

const reply = z.looseObject({
  action: z.literal("accept"),
  content: z.record(z.string(), z.unknown()),
});

/** Null if the user declined, or if the client's reply has no answer to any question. */
function userAnswers(
  given: unknown,
  questions: readonly UserQuestion[],
): Record<string, readonly string[]> | null {
  const parsed = reply.safeParse(given);
  if (!parsed.success) return null;
  const { content } = parsed.data;
  const answers = questions.flatMap(({ id }) => {
    const answer = Object.hasOwn(content, id) ? content[id] : undefined;
    return typeof answer === "string" ? [[id, [answer]] as const] : [];
  });
  return answers.length === 0 ? null : Object.fromEntries(answers);
}

function line(text: string): string {
  return neutraliseLine(text);
}
