import type { Approver } from "../../agent/approvals/approvals.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import type { AskedUser, UserQuestion } from "../../tools/session/request-user-input.js";
import { answerOfEscape, approvalQuestion, type QuestionLine } from "../questions/approval-question.js";
import type { Answer, Question, QuestionDesk } from "./question.js";
import type { Block } from "./screen/block.js";
import type { Tone } from "./screen/styled-line.js";

export interface AskParts {
  desk: QuestionDesk;
  show(block: Block): void;
  /** Of the screen as it is now. */
  columns(): number;
}

const tones: Record<QuestionLine["kind"], Tone> = {
  title: "warning",
  said: "quiet",
  command: "accent",
  frame: "quiet",
};

/** Rows of what is asked about that stand beside the choice. */
const REMINDER_ROWS = 3;

/**
 * A person at the screen, who lets commands and patches run or not. What they are asked about goes above, where all of it can be read
 * however long it is; only the choice is made below.
 */
export function approverAtScreen({ desk, show, columns }: AskParts): Approver {
  return {
    async ask(request, { signal }) {
      const { lines, choices } = approvalQuestion(request, { columns: columns() - 1 });
      show({ kind: "question", lines: lines.map(({ text, kind }) => ({ text, tone: tones[kind] })) });
      const question: Question = {
        lines: [
          { text: request.action.kind === "patch" ? "Apply it?" : "Run it?", tone: "warning" },
          ...reminder(lines),
        ],
        choices,
        takesText: false,
        dismissal: "no, and end the turn",
      };
      const answer = await desk.ask(question, { signal });
      const chosen = choices.find(({ key }) => answer.kind === "choice" && answer.choice.key === key);
      show({ kind: "answer", text: chosen?.label ?? question.dismissal });
      return chosen?.answer ?? answerOfEscape;
    },
  };
}

/**
 * The beginning of what is asked about. A model may go on talking while its call waits, and what it says, which may look like a question
 * of brig's about something else, then stands between the question and the choice.
 */
function reminder(lines: readonly QuestionLine[]): Question["lines"] {
  const rows = lines.filter(({ kind }) => kind === "command");
  const left = rows.length - REMINDER_ROWS;
  const more = left > 0 ? [{ text: `  ⋮ and ${left} more rows, shown above`, tone: tones.frame }] : [];
  return [...rows.slice(0, REMINDER_ROWS).map(({ text, kind }) => ({ text, tone: tones[kind] })), ...more];
}

/** A person at the screen, who answers what a model wants to know. */
export function userAtScreen({ desk, show }: Omit<AskParts, "columns">): AskedUser {
  return {
    async ask(questions, { signal }) {
      const answers: [string, readonly string[]][] = [];
      for (const each of questions) {
        const question = screenQuestion(each);
        const answer = answerText(await desk.ask(question, { signal }), each);
        show({ kind: "question", lines: question.lines });
        show({ kind: "answer", text: neutralise(answer ?? question.dismissal) });
        if (answer === null) return null;
        answers.push([each.id, [answer]]);
      }
      return Object.fromEntries(answers);
    },
  };
}

/** The choices by their numbers; the ninth is the last that one key can name. */
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

/** The model's own word for a choice. */
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
