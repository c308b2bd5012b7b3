import { z } from "zod";
import { neutraliseLine } from "../../../../lib/terminal/terminal.js";
import type { UserQuestion } from "../../../../tools/index.js";
import type { Elicitation, QuestionOrigin } from "./approval-question.js";

/**
 * Builds a form with the model's questions. The user can answer each with one of its choices or in other
 * words.
 */
export function userQuestion(questions: readonly UserQuestion[], origin: QuestionOrigin): Elicitation {
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
export function userAnswers(
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
