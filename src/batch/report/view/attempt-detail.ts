import { z } from "zod";
import { formatBytes } from "../../../lib/bytes.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { AttemptFailure, AttemptResult, Confirmation } from "../../runs/results/attempt-result.js";
import { runFiles, taskFolderName } from "../../runs/results/run-files.js";
import { fact, RunFiles, shownLine, shownText } from "./run-file.js";
import type {
  AttemptDetail,
  AttemptFailureView,
  AttemptStep,
  Fact,
  ShownText,
  Trajectory,
  TrajectoryCall,
  TrajectoryStep,
} from "./view-model.js";

export interface DetailLimits {
  /** Of each file that is shown as text. */
  maxFileBytes: number;
  /** A longer trajectory is not read. */
  maxTrajectoryBytes: number;
  trajectory: TrajectoryLimits;
}

/** For a page that holds thousands of attempts. */
export const staticLimits: DetailLimits = {
  maxFileBytes: 64 * 1024,
  maxTrajectoryBytes: 16 * 1024 * 1024,
  trajectory: { maxSteps: 400, maxTextChars: 16_000, maxTotalChars: 512_000 },
};

/** For one attempt at a time. */
export const liveLimits: DetailLimits = {
  maxFileBytes: 256 * 1024,
  maxTrajectoryBytes: 64 * 1024 * 1024,
  trajectory: { maxSteps: 2000, maxTextChars: 64_000, maxTotalChars: 4_000_000 },
};

const MAX_TESTS = 2000;
const MAX_LINES = 100;
const MAX_MESSAGE_CHARS = 16_000;

/** Reads everything that is shown of one attempt. What is missing or cannot be read is null. */
export function attemptDetail(run: string, result: AttemptResult, limits: DetailLimits): AttemptDetail {
  // `attemptFolder` would lead out of the run for a task named "..".
  const folder = [runFiles.attempts, taskFolderName(result.task), String(result.attempt)];
  const files = new RunFiles(run);
  const text = (path: string | null): ShownText | null =>
    path === null ? null : files.text([...folder, path], { maxBytes: limits.maxFileBytes });
  const names = result.files;
  return {
    folder: shownLine(folder.join("/")),
    failure: result.failure === null ? null : shownFailure(result.failure),
    tries: result.tries
      .slice(0, MAX_LINES)
      .map(({ startedAt, failure }) => ({ startedAt, failure: shownFailure(failure) })),
    rewards: rewardFacts(result.rewards),
    steps: result.steps.slice(0, MAX_LINES).map(shownStep),
    usage: usageFacts(result.usage),
    resources: resourceFacts(result.resources),
    timings: timingsOf(result.durations),
    image: result.imageId === null ? null : shownLine(result.imageId),
    taskChecksum: shownLine(result.taskChecksum),
    trajectory: trajectoryOf(files, { path: names.trajectory, folder, limits }),
    diff: text(names.diff),
    testOutput: text(names.testOutput),
    agentOutput: text(names.agentOutput),
    proof: text(names.proof),
  };
}

function trajectoryOf(
  files: RunFiles,
  { path, folder, limits }: { path: string | null; folder: string[]; limits: DetailLimits },
): Trajectory {
  if (path === null) return { kind: "none" };
  const bytes = files.bytes([...folder, path], { maxBytes: limits.maxTrajectoryBytes });
  if (bytes === null) return { kind: "unreadable", reason: "cannot be read" };
  if (bytes === "too-long")
    return { kind: "unreadable", reason: `is longer than ${formatBytes(limits.maxTrajectoryBytes)}` };
  return shownTrajectory(bytes.toString("utf8"), limits.trajectory);
}

function shownFailure(failure: AttemptFailure): AttemptFailureView {
  return {
    class: failure.class,
    message: shownText(failure.message, MAX_MESSAGE_CHARS),
    evidence: failure.evidence.slice(0, MAX_LINES).map(shownLine),
  };
}

function shownStep(step: AttemptResult["steps"][number]): AttemptStep {
  const { verification } = step;
  return {
    name: step.name === null ? null : shownLine(step.name),
    ending: step.agent,
    message: step.agentMessage === null ? null : shownText(step.agentMessage, MAX_MESSAGE_CHARS),
    rewards: rewardFacts(step.rewards ?? {}),
    verification: verification && {
      ...verification,
      message: verification.message === null ? null : shownText(verification.message, MAX_MESSAGE_CHARS),
      tests:
        verification.tests
          ?.slice(0, MAX_TESTS)
          .map(({ name, status }) => ({ name: shownLine(name), status })) ?? null,
      omittedTests: Math.max(0, (verification.tests?.length ?? 0) - MAX_TESTS),
      findings: shownLines(verification.findings.filter((one) => !verification.notes.includes(one))),
      notes: shownLines(verification.notes),
      confirmation: verification.confirmation && shownConfirmation(verification.confirmation),
    },
  };
}

function shownLines(lines: readonly string[]): string[] {
  return lines.slice(0, MAX_LINES).map(shownLine);
}

function shownConfirmation({ paths, message, ...facts }: Confirmation): Confirmation {
  return { ...facts, paths: shownLines(paths), message: message === null ? null : shownLine(message) };
}

function rewardFacts(rewards: Readonly<Record<string, number>>): Fact[] {
  return Object.entries(rewards)
    .slice(0, MAX_LINES)
    .map(([name, value]) => fact(name, value));
}

function usageFacts({ costUsd, ...usage }: AttemptResult["usage"]): Fact[] {
  return [
    fact("Input tokens", usage.inputTokens),
    fact("of these from the cache", usage.cachedInputTokens),
    fact("Output tokens", usage.outputTokens),
    fact("Cost", costUsd === null ? "unknown" : `$${costUsd.toFixed(4)}`),
    fact("Requests to the model", usage.turns),
    fact("Tool calls", usage.toolCalls),
  ];
}

function resourceFacts(resources: AttemptResult["resources"]): Fact[] {
  const bytes = (name: string, value: number | null) =>
    value === null ? [] : [fact(name, formatBytes(value))];
  const time = (name: string, value: number | null) =>
    value === null ? [] : [fact(name, formatDuration(value))];
  return [
    ...bytes("Memory the task asks for", resources.memoryRequestedBytes),
    ...bytes("Memory limit", resources.memoryLimitBytes),
    ...bytes("Most memory used", resources.peakMemoryBytes),
    ...bytes("Disk the task allows the agent", resources.diskRequestedBytes),
    ...time("Processor time", resources.cpuMs),
    ...time("Kept from its processors by its limit", resources.throttledMs),
    ...time("Lost while others held the processors", resources.waitedForCpuMs),
  ];
}

function timingsOf({
  environmentMs,
  agentMs,
  verifierMs,
}: AttemptResult["durations"]): AttemptDetail["timings"] {
  const stages = { environment: environmentMs, agent: agentMs, verifier: verifierMs } as const;
  return (["environment", "agent", "verifier"] as const).flatMap((stage) => {
    const ms = stages[stage];
    return ms === null ? [] : [{ stage, ms }];
  });
}

interface TrajectoryLimits {
  /** A longer trajectory is cut after so many steps. */
  maxSteps: number;
  /** The most that is shown of each message, argument list and output. */
  maxTextChars: number;
  /** The most that is shown of an attempt, all texts together. */
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
    shown.push(shownTrajectoryStep(parsed.data, { number: index + 1, texts }));
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

function shownTrajectoryStep(
  step: Step,
  { number, texts }: { number: number; texts: TextBudget },
): TrajectoryStep {
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
