import { z } from "zod";
import type { AskedUser, UserQuestion } from "../../../tools/index.js";
import type { ClientLink } from "../client-link.js";
import { longText, titleText } from "../updates/shown-text.js";

const MAX_ANSWER_CHARS = 16 * 1024;
const MAX_QUESTIONS = 20;
const MAX_OPTIONS = 50;

const answered = z.discriminatedUnion("action", [
  z.looseObject({ action: z.literal("accept"), content: z.record(z.string(), z.unknown()).nullish() }),
  z.looseObject({ action: z.literal("decline") }),
  z.looseObject({ action: z.literal("cancel") }),
]);

/** Asks the model's questions as a form: for each a list to choose from, and a field for another answer. */
export function clientUser(link: ClientLink, { sessionId }: { sessionId: () => string }): AskedUser {
  return {
    async ask(questions, { signal = new AbortController().signal }) {
      const asked = questions.slice(0, MAX_QUESTIONS);
      const answer = await link
        .elicit({ sessionId: sessionId(), ...formOf(asked) }, signal)
        .catch(() => null);
      signal.throwIfAborted();
      const parsed = answered.safeParse(answer);
      if (!parsed.success || parsed.data.action !== "accept") return null;
      return answersIn(asked, parsed.data.content ?? {});
    },
  };
}

export function formOf(questions: readonly UserQuestion[]): object {
  const properties = questions.flatMap(({ header, question, options = [] }, index) => {
    const oneOf = options.slice(0, MAX_OPTIONS).map(({ label, description }, at) => ({
      const: String(at),
      title: titleText(`${label} – ${description}`),
    }));
    const about = { type: "string", title: titleText(header), description: longText(question, 2000) };
    const own = { type: "string", title: "Another answer" };
    return oneOf.length === 0
      ? [[`text${index}`, about]]
      : [
          [`choice${index}`, { ...about, oneOf }],
          [`text${index}`, own],
        ];
  });
  const [first] = questions;
  const message = questions.length === 1 ? longText(first?.question ?? "", 2000) : "The agent has questions.";
  return {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: Object.fromEntries(properties), required: [] },
  };
}

/**
 * The answers by the id of their question; null if there is none. Where a person chose an option and also
 * wrote a text, the text counts.
 */
export function answersIn(
  questions: readonly UserQuestion[],
  content: Readonly<Record<string, unknown>>,
): Readonly<Record<string, readonly string[]>> | null {
  const answers = questions.flatMap(({ id, options = [] }, index): [string, string[]][] => {
    const text = content[`text${index}`];
    if (typeof text === "string" && text.trim() !== "") return [[id, [text.slice(0, MAX_ANSWER_CHARS)]]];
    const label = options[Number(content[`choice${index}`])]?.label;
    return label === undefined ? [] : [[id, [label]]];
  });
  return answers.length === 0 ? null : Object.fromEntries(answers);
}
