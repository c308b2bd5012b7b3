import { z } from "zod";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { fact, shownLine, shownText } from "./shown-text.js";
import type { Fact, ShownText, Trajectory, TrajectoryCall, TrajectoryStep } from "./view-model.js";

export interface TrajectoryLimits {
  /** A longer trajectory is cut after so many steps. */
  maxSteps: number;
  /** Of each message, argument list and output. */
  maxTextChars: number;
  /** Of all texts together. */
  maxTotalChars: number;
}

/** Of the calls of a step, and of their results: each result is looked for among all of them. */
const MAX_CALLS = 1000;
const MAX_FACTS = 20;

const partsSchema = z.array(
  z.looseObject({
    type: z.string(),
    text: z.string().nullish(),
    source: z.looseObject({ media_type: z.string().nullish() }).nullish(),
  }),
);
const contentSchema = z.union([z.string(), partsSchema]);

/** The parts of an ATIF document that are shown. It was written in a container or by another program. */
const stepSchema = z.looseObject({
  timestamp: z.string().nullish(),
  source: z.enum(["system", "user", "agent"]),
  message: contentSchema.nullish(),
  reasoning_content: z.string().nullish(),
  model_name: z.string().nullish(),
  tool_calls: z
    .array(
      z.looseObject({
        tool_call_id: z.string().nullish(),
        function_name: z.string(),
        arguments: z.unknown(),
      }),
    )
    .nullish(),
  observation: z
    .looseObject({
      results: z.array(
        z.looseObject({
          source_call_id: z.string().nullish(),
          content: contentSchema.nullish(),
          extra: z.record(z.string(), z.unknown()).nullish(),
        }),
      ),
    })
    .nullish(),
  metrics: z
    .looseObject({ prompt_tokens: z.number().nullish(), completion_tokens: z.number().nullish() })
    .nullish(),
});
const documentSchema = z.looseObject({ steps: z.array(z.unknown()) });

type Step = z.infer<typeof stepSchema>;
type Result = NonNullable<Step["observation"]>["results"][number];

export function shownTrajectory(json: string, limits: TrajectoryLimits): Trajectory {
  const value = parseJson(json);
  const document = documentSchema.safeParse(value);
  if (!document.success || isTooDeep(value)) return { kind: "unreadable", reason: "is not an ATIF document" };
  const { steps } = document.data;
  const texts = new TextBudget(limits);
  const shown: TrajectoryStep[] = [];
  for (const [index, step] of steps.entries()) {
    if (index === limits.maxSteps || texts.isSpent) break;
    const parsed = stepSchema.safeParse(step);
    if (!parsed.success) return { kind: "unreadable", reason: `is not valid ATIF at step ${index + 1}` };
    shown.push(shownStep(parsed.data, { number: index + 1, texts }));
  }
  return { kind: "steps", steps: shown, omittedSteps: steps.length - shown.length };
}

/** Cuts each text, and says when all together are as long as allowed. */
class TextBudget {
  readonly #limits: TrajectoryLimits;
  #chars = 0;

  constructor(limits: TrajectoryLimits) {
    this.#limits = limits;
  }

  get isSpent(): boolean {
    return this.#chars >= this.#limits.maxTotalChars;
  }

  cut(text: string): ShownText {
    const shown = shownText(text, this.#limits.maxTextChars);
    this.#chars += shown.head.length + shown.tail.length;
    return shown;
  }
}

function shownStep(step: Step, { number, texts }: { number: number; texts: TextBudget }): TrajectoryStep {
  const { tool_calls: allCalls, observation } = step;
  const results = (observation?.results ?? []).slice(0, MAX_CALLS);
  const toolCalls = (allCalls ?? []).slice(0, MAX_CALLS);
  const calls = toolCalls.map((call): TrajectoryCall => {
    const result = results.find(
      ({ source_call_id }) => typeof source_call_id === "string" && source_call_id === call.tool_call_id,
    );
    return {
      tool: shownLine(call.function_name),
      arguments: texts.cut(argumentText(call.arguments)),
      output: result === undefined ? null : texts.cut(contentText(result.content)),
      facts: factsOf(result),
    };
  });
  const known = new Set(toolCalls.map(({ tool_call_id }) => tool_call_id));
  const others = results.filter(({ source_call_id }) => source_call_id == null || !known.has(source_call_id));
  const observed = others.map(
    (result): TrajectoryCall => ({
      tool: "",
      arguments: texts.cut(""),
      output: texts.cut(contentText(result.content)),
      facts: factsOf(result),
    }),
  );
  return {
    number,
    source: step.source,
    at: step.timestamp == null ? null : shownLine(step.timestamp),
    message: texts.cut(contentText(step.message)),
    reasoning: step.reasoning_content ? texts.cut(step.reasoning_content) : null,
    calls: [...calls, ...observed],
    facts: stepFacts(step),
  };
}

function stepFacts({ model_name, metrics, tool_calls: calls, observation }: Step): Fact[] {
  const beyond = (all: readonly unknown[] | null | undefined) => Math.max(0, (all?.length ?? 0) - MAX_CALLS);
  const [leftOutCalls, leftOutResults] = [beyond(calls), beyond(observation?.results)];
  return [
    ...(model_name == null ? [] : [fact("model", model_name)]),
    ...(metrics?.prompt_tokens == null ? [] : [fact("input tokens", metrics.prompt_tokens)]),
    ...(metrics?.completion_tokens == null ? [] : [fact("output tokens", metrics.completion_tokens)]),
    ...(leftOutCalls === 0 ? [] : [fact("calls left out", leftOutCalls)]),
    ...(leftOutResults === 0 ? [] : [fact("results left out", leftOutResults)]),
  ];
}

function factsOf(result: Result | undefined): Fact[] {
  const facts = Object.entries(result?.extra ?? {}).slice(0, MAX_FACTS);
  return facts.flatMap(([name, value]) =>
    typeof value === "string" || typeof value === "number" || typeof value === "boolean"
      ? [fact(name.replaceAll("_", " "), value)]
      : [],
  );
}

/** The only argument of a call alone, if it is a text, and otherwise all of them as JSON. */
function argumentText(value: unknown): string {
  if (typeof value === "string") return value;
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const [only] = entries;
  if (entries.length === 1 && typeof only?.[1] === "string") return only[1];
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

function contentText(content: z.infer<typeof contentSchema> | null | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? [])
    .map(
      ({ type, text, source }) =>
        text ?? `[${type}${source?.media_type == null ? "" : `, ${source.media_type}`}]`,
    )
    .join("\n");
}
