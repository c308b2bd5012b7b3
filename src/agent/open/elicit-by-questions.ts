import { clipped } from "../../sandbox/index.js";
import type {
  AskedUser,
  Elicit,
  ElicitAnswer,
  ElicitField,
  ElicitQuestion,
  UserQuestion,
} from "../../tools/index.js";

type Value = string | number | boolean | readonly string[];

/** A form with more fields is declined, because each field is a question of its own. */
const MAX_FIELDS = 20;
const MAX_ATTEMPTS = 3;
const MAX_MESSAGE_CHARS = 2000;
const MAX_NAME_CHARS = 80;

/**
 * Asks the user what an MCP server wants to know: first whether to answer at all, then for each value. Each
 * question names the server, because the server chooses the words and could make them look like a question of
 * brig.
 */
export function elicitFrom(user: AskedUser): Elicit {
  return async (question, { signal }) => {
    const ask = async (one: UserQuestion) => (await user.ask([one], { signal }))?.[one.id]?.[0] ?? null;
    if (question.kind === "form" && question.fields.length > MAX_FIELDS) return { action: "decline" };
    const consent = await ask(consentTo(question));
    if (consent === null) return { action: "cancel" };
    if (!isYes(consent)) return { action: "decline" };
    if (question.kind === "url") return { action: "accept", content: {} };
    const content = new Map<string, Value>();
    for (const field of question.fields) {
      const answer = await askedValue(field, question.server, ask);
      if (answer.kind === "none") return { action: "cancel" };
      if (answer.kind === "value") content.set(field.name, answer.value);
    }
    return { action: "accept", content: Object.fromEntries(content) } satisfies ElicitAnswer;
  };
}

const YES = "Yes";
const LEAVE_OUT = "Leave it out";
/**
 * The text to type to leave a value out if there are no choices. A numbered choice will not do: its number may be
 * the value.
 */
const NOTHING = "-";

function isYes(text: string): boolean {
  return /^(?:y|yes|true)$/i.test(text);
}

function consentTo(question: ElicitQuestion): UserQuestion {
  const message = clipped(question.message, MAX_MESSAGE_CHARS);
  const isForm = question.kind === "form";
  const page = isForm ? "" : `\nThe page: ${clipped(question.url, MAX_MESSAGE_CHARS)}`;
  return {
    id: "consent",
    header: headerOf(question.server),
    question: `The server asks: ${message}${page}`,
    options: [
      {
        label: YES,
        description: isForm ? "answer; the server gets what you type" : "I have opened the page myself",
      },
      { label: "No", description: "decline" },
    ],
  };
}

function headerOf(server: string): string {
  return `MCP server ${clipped(server, MAX_NAME_CHARS)}`;
}

type FieldAnswer = { kind: "value"; value: Value } | { kind: "left-out" } | { kind: "none" };

/** Asks for a value, and again a few times if the answer does not fit. */
async function askedValue(
  field: ElicitField,
  server: string,
  ask: (question: UserQuestion) => Promise<string | null>,
): Promise<FieldAnswer> {
  const name = clipped(field.title ?? field.name, MAX_NAME_CHARS);
  const about = field.description === null ? "" : ` – ${clipped(field.description, MAX_MESSAGE_CHARS)}`;
  const choices = choicesOf(field);
  const leavesOut = choices.length > 0 ? LEAVE_OUT : NOTHING;
  let problem = "";
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const text = await ask({
      id: "value",
      header: headerOf(server),
      question: `${problem}${name}${about}${hintOf(field)}`,
      options: choices,
    });
    if (text === null) return { kind: "none" };
    if (!field.required && text === leavesOut) return { kind: "left-out" };
    const value = parsed(field, text);
    if (value !== null) return { kind: "value", value };
    problem = `${JSON.stringify(clipped(text, MAX_NAME_CHARS))} does not fit. `;
  }
  return { kind: "none" };
}

function choicesOf({ value, required }: ElicitField): { label: string; description: string }[] {
  const none = required ? [] : [{ label: LEAVE_OUT, description: "it is optional" }];
  if (value.type === "boolean")
    return [{ label: YES, description: "true" }, { label: "No", description: "false" }, ...none];
  if (value.type !== "choice") return [];
  return [...value.choices.map(({ value: label, title }) => ({ label, description: title })), ...none];
}

function hintOf(field: ElicitField): string {
  const isText = field.value.type !== "boolean" && field.value.type !== "choice";
  return `${kindOf(field)}${isText && !field.required ? ` (optional: ${NOTHING} leaves it out)` : ""}`;
}

function kindOf({ value }: ElicitField): string {
  switch (value.type) {
    case "choices":
      return ` (several of, separated by commas: ${value.choices.map((one) => one.value).join(", ")})`;
    case "number":
    case "integer": {
      const least = value.minimum === null ? "" : `, at least ${value.minimum}`;
      const most = value.maximum === null ? "" : `, at most ${value.maximum}`;
      return ` (${value.type === "integer" ? "a whole number" : "a number"}${least}${most})`;
    }
    case "string":
      return value.format === null ? "" : ` (${value.format})`;
    case "boolean":
    case "choice":
      return "";
    default:
      return value satisfies never;
  }
}

/**
 * Converts the answer into a value of the field's kind. Null if it is not one, or is outside of the server's
 * limits.
 */
function parsed({ value }: ElicitField, text: string): Value | null {
  switch (value.type) {
    case "boolean":
      if (isYes(text)) return true;
      return /^(?:n|no|false)$/i.test(text) ? false : null;
    case "number":
    case "integer": {
      const number = text.trim() === "" ? Number.NaN : Number(text);
      const fits = value.type === "integer" ? Number.isSafeInteger(number) : Number.isFinite(number);
      const isWithin = number >= (value.minimum ?? -Infinity) && number <= (value.maximum ?? Infinity);
      return fits && isWithin ? number : null;
    }
    case "choice":
      return value.choices.some((choice) => choice.value === text) ? text : null;
    case "choices": {
      const chosen = text.split(",").map((one) => one.trim());
      const areKnown = chosen.every((one) => value.choices.some((choice) => choice.value === one));
      const isWithin =
        chosen.length >= (value.minItems ?? 0) && chosen.length <= (value.maxItems ?? Infinity);
      return areKnown && isWithin ? chosen : null;
    }
    case "string": {
      const isWithin = text.length >= (value.minLength ?? 0) && text.length <= (value.maxLength ?? Infinity);
      return isWithin ? text : null;
    }
    default:
      return value satisfies never;
  }
}
