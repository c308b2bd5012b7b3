import { formatBytes } from "../../../lib/bytes.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { AttemptFailure, AttemptResult, Confirmation } from "../../runs/results/attempt-result.js";
import { RunFiles } from "./run-file.js";
import { fact, shownLine, shownText } from "./shown-text.js";
import { shownTrajectory, type TrajectoryLimits } from "./trajectory.js";
import type {
  AttemptDetail,
  AttemptFailureView,
  AttemptStep,
  Fact,
  ShownConfirmation,
  ShownText,
  Trajectory,
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
  const folder = ["attempts", result.task.replaceAll("/", "__"), String(result.attempt)];
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
      mode: verification.mode,
      verifier: verification.verifier,
      message: verification.message === null ? null : shownText(verification.message, MAX_MESSAGE_CHARS),
      exitCode: verification.exitCode,
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

function shownConfirmation({ paths, message, ...facts }: Confirmation): ShownConfirmation {
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
