import type { Approver } from "../../agent/index.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import type { AskedUser, UserQuestion } from "../../tools/index.js";
import { answerOfEscape, approvalQuestion, type QuestionLine } from "../questions/approval-question.js";
import type { Answer, PendingQuestions, Question } from "./question.js";
import type { Block } from "./screen/block.js";
import type { Tone } from "./screen/styled-line.js";

export interface AskParts {
  questions: PendingQuestions;
  show(block: Block): void;
  columns(): number;
}

const tones: Record<QuestionLine["kind"], Tone> = {
  title: "warning",
  quote: "quiet",
  command: "accent",
  frame: "quiet",
};

const prompts = { command: "Run it?", patch: "Apply it?", "mcp-call": "Call it?" } as const;

const REMINDER_ROWS = 3;

/**
 * Asks for approvals on the screen. The whole question goes into the scrolling part, where it can be read
 * however long it is; only the choices are in the live part below.
 */
export function screenApprover({ questions, show, columns }: AskParts): Approver {
  return {
    async ask(request, { signal }) {
      const { lines, choices } = approvalQuestion(request, { columns: columns() - 1 });
      show({ kind: "question", lines: lines.map(({ text, kind }) => ({ text, tone: tones[kind] })) });
      const question: Question = {
        lines: [{ text: prompts[request.action.kind], tone: "warning" }, ...reminder(lines)],
        choices,
        takesText: false,
        dismissal: "no, and end the turn",
      };
      const answer = await questions.ask(question, { signal });
      const chosen = choices.find(({ key }) => answer.kind === "choice" && answer.choice.key === key);
      show({ kind: "answer", text: chosen?.label ?? question.dismissal });
      return chosen?.answer ?? answerOfEscape;
    },
  };
}

/**
 * The beginning of the command or patch. A model may go on writing while its call waits for approval. Its
 * text then appears between the question and the choices, and could imitate a question about something else.
 */
function reminder(lines: readonly QuestionLine[]): Question["lines"] {
  const rows = lines.filter(({ kind }) => kind === "command");
  const left = rows.length - REMINDER_ROWS;
  const more = left > 0 ? [{ text: `  ⋮ and ${left} more rows, shown above`, tone: tones.frame }] : [];
  return [...rows.slice(0, REMINDER_ROWS).map(({ text, kind }) => ({ text, tone: tones[kind] })), ...more];
}

export function screenUser({ questions, show }: Omit<AskParts, "columns">): AskedUser {
  return {
    async ask(userQuestions, { signal }) {
      const answers: [string, readonly string[]][] = [];
      for (const each of userQuestions) {
        const question = screenQuestion(each);
        const answer = answerText(await questions.ask(question, { signal }), each);
        show({ kind: "question", lines: question.lines });
        show({ kind: "answer", text: neutralise(answer ?? question.dismissal) });
        if (answer === null) return null;
        answers.push([each.id, [answer]]);
      }
      return Object.fromEntries(answers);
    },
  };
}

/** Choices are numbered, so at most nine can be chosen with one key. */
function screenQuestion({ header, question, options = [] }: UserQuestion): Question {
  return {
    lines: [
      { text: neutraliseLine(header), tone: "warning" },
      { text: neutralise(question), tone: "strong" },
    ],
    choices: options.slice(0, 9).map(({ label, description }, index) => ({
      key: `${index + 1}`,
      label: `${neutraliseLine(label)} – ${neutraliseLine(description)}`,
    })),
    takesText: true,
    dismissal: "no answer",
  };
}

/** Returns the label that the model gave to the choice, or the text; null for no answer. */
function answerText(answer: Answer, { options = [] }: UserQuestion): string | null {
  switch (answer.kind) {
    case "dismissed":
      return null;
    case "text":
      return answer.text;
    case "choice":
      return options[Number(answer.choice.key) - 1]?.label ?? null;
    default:
      return answer satisfies never;
  }
}
