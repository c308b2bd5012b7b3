import { z } from "zod";
import { type ArgumentsOf, defineTool } from "../define-tool.js";
import { failure, type Tool, type ToolOutput } from "../tool.js";

const parameters = z.object({
  questions: z
    .array(
      z.object({
        id: z.string().describe("A short name in snake_case, under which the answer comes back."),
        header: z.string().describe("A heading of at most twelve characters."),
        question: z.string().describe("The question, in one sentence."),
        options: z
          .array(
            z.object({
              label: z.string().describe("The choice in one to five words."),
              description: z.string().describe("What choosing it means, in one sentence."),
            }),
          )
          .optional()
          .describe(
            "Two or three choices, the recommended one first. The user can always answer something else.",
          ),
      }),
    )
    .min(1)
    .describe("One to three questions, one being best."),
});

/** A question of the model to the user. */
export type UserQuestion = z.output<typeof parameters>["questions"][number];

/** A user who can answer questions. */
export interface AskedUser {
  /** Returns the answers by question id, or null if the user declines. Aborts reject with the reason. */
  ask(
    questions: readonly UserQuestion[],
    options: { signal?: AbortSignal | undefined },
  ): Promise<Readonly<Record<string, readonly string[]>> | null>;
}

export interface UserInputNeeds {
  /** Null if nobody can answer. */
  readonly user: AskedUser | null;
}

export function requestUserInputTool({
  user,
}: UserInputNeeds): Tool<ToolOutput, ArgumentsOf<typeof parameters>> {
  return defineTool({
    name: "request_user_input",
    description: "Asks the user one to three short questions and waits for the answers.",
    parameters,
    supportsParallel: false,
    changesNoFiles: true,
    async run({ questions }, { signal }) {
      if (user === null)
        return failure("request_user_input is unavailable: nobody can answer in this session");
      if (questions.some(({ options }) => options === undefined || options.length === 0))
        return failure("request_user_input requires non-empty options for every question");
      const answers = await user.ask(questions, { signal });
      if (answers === null) return failure("request_user_input was cancelled before receiving a response");
      const byId = Object.entries(answers).map(([id, texts]) => [id, { answers: texts }]);
      return { content: JSON.stringify({ answers: Object.fromEntries(byId) }), success: true };
    },
  });
}
