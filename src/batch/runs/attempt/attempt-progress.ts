import { join, relative } from "node:path";
import type { Sandbox } from "../../../sandbox/index.js";
import type { TaskStep } from "../../tasks/task.js";
import { type AttemptAgent, noUsage, usageTogether } from "../agents/attempt-agent.js";
import { gradeOf } from "../grading/rewards.js";
import { TEST_OUTPUT } from "../grading/run-tests.js";
import type { Verification } from "../grading/verification.js";
import { asNumber, type CounterFiles, readCounter, readProcessorCounts } from "../processors.js";
import type { AttemptFailure, AttemptResult, AttemptUsage } from "../results/attempt-result.js";
import type { Attempt, AttemptStage } from "./attempt.js";
import type { AgentRun } from "./drive-agent.js";

type StepResult = AttemptResult["steps"][number];

/** The parts of an attempt that its result repeats. */
export interface ProgressingAttempt extends Pick<Attempt, "task" | "attempt" | "tries" | "folder"> {
  agent: Pick<AttemptAgent, "name" | "model">;
}

/** Collects what becomes known about an attempt while it runs. */
export class AttemptProgress {
  stage: AttemptStage = "image";
  /** Called with each stage that begins. */
  onEntering: (stage: AttemptStage) => void = () => undefined;
  imageId: string | null = null;
  readonly #attempt: ProgressingAttempt;
  readonly #startedAt = new Date();
  readonly #beganAt = performance.now();
  readonly #steps: StepResult[] = [];
  #status: "running" | "cancelled" = "running";
  #failure: AttemptFailure | null = null;
  #findings: readonly string[] = [];
  #memory: { requestedBytes: number | null; limitBytes: number } | null = null;
  #resources: UsedResources = { peakMemoryBytes: null, cpuMs: null, throttledMs: null };
  #usage: AttemptUsage = noUsage;
  #environmentMs: number | null = null;
  #agentMs: number | null = null;
  #verifierMs: number | null = null;
  #agentExtendedMs: number | null = null;
  #verifierExtendedMs: number | null = null;
  #waitedForCpuMs: number | null = null;
  #files: AttemptResult["files"] = {
    trajectory: null,
    session: null,
    testOutput: null,
    diff: null,
    agentOutput: null,
    proof: null,
  };

  constructor(attempt: ProgressingAttempt) {
    this.#attempt = attempt;
  }

  started(memory: { requestedBytes: number | null; limitBytes: number }): void {
    this.#memory = memory;
    this.#environmentMs = performance.now() - this.#beganAt;
  }

  agentEnded(step: TaskStep, { outcome, time, folder }: AgentRun & { folder: string }): void {
    const { ending, message, usage, files } = outcome;
    this.#steps.push({
      name: step.name,
      agent: ending,
      agentMessage: message,
      rewards: null,
      verification: null,
    });
    this.#usage = usageTogether(this.#usage, usage);
    this.#agentMs = (this.#agentMs ?? 0) + time.durationMs;
    this.#agentExtendedMs = (this.#agentExtendedMs ?? 0) + time.extendedMs;
    this.#waitedForCpuMs = sumOfKnown(this.#waitedForCpuMs, time.waitedForCpuMs);
    const inFolder = (file: string | undefined) =>
      file === undefined ? null : relative(this.#attempt.folder, join(folder, file));
    this.#files.trajectory ??= inFolder(files.trajectory);
    this.#files.session ??= inFolder(files.session);
    this.#files.agentOutput ??= inFolder(files.agentOutput);
  }

  /** A file in the attempt's folder. */
  wrote(kind: "diff" | "proof", file: string): void {
    this.#files[kind] = file;
  }

  /** Sets the findings that are added to those of each step. */
  noticed(findings: readonly string[]): void {
    this.#findings = findings;
  }

  used(resources: UsedResources): void {
    this.#resources = usedTogether(this.#resources, resources);
  }

  verified(
    step: TaskStep,
    { verification, folder, durationMs }: { verification: Verification; folder: string; durationMs: number },
  ): void {
    const { rewards, time, ...rest } = verification;
    const findings = [...this.#findings, ...rest.findings];
    const last = this.#steps.at(-1);
    if (last === undefined || last.name !== step.name)
      throw new TypeError("a step was verified that was not run");
    last.rewards = rewards;
    last.verification = { ...rest, findings, notes: [...this.#findings, ...rest.notes] };
    this.#verifierMs = (this.#verifierMs ?? 0) + durationMs;
    this.#verifierExtendedMs = sumOfKnown(this.#verifierExtendedMs, time?.extendedMs ?? null);
    this.#waitedForCpuMs = sumOfKnown(this.#waitedForCpuMs, time?.waitedForCpuMs ?? null);
    this.#files.testOutput ??= relative(this.#attempt.folder, join(folder, TEST_OUTPUT));
  }

  cancel(): void {
    this.#status = "cancelled";
  }

  fail(failure: AttemptFailure): void {
    this.#failure = failure;
  }

  result(endedAt: Date): AttemptResult {
    const { task, attempt, agent } = this.#attempt;
    const { storageMb } = task.environment.limits;
    const status = this.#finalStatus();
    const grade =
      status === "scored" ? gradeOf(this.#attempt.task, this.#steps) : { reward: null, rewards: {} };
    return {
      schemaVersion: 1,
      task: task.name,
      attempt,
      taskChecksum: task.checksum,
      agent: { name: agent.name, model: agent.model },
      status,
      ...grade,
      failure: this.#failure,
      steps: this.#steps,
      usage: this.#usage,
      resources: {
        memoryRequestedBytes: this.#memory?.requestedBytes ?? null,
        memoryLimitBytes: this.#memory?.limitBytes ?? null,
        ...this.#resources,
        waitedForCpuMs: this.#waitedForCpuMs,
        diskRequestedBytes: storageMb === null ? null : storageMb * 1024 * 1024,
      },
      startedAt: this.#startedAt.toISOString(),
      endedAt: endedAt.toISOString(),
      durations: {
        environmentMs: this.#environmentMs,
        agentMs: this.#agentMs,
        verifierMs: this.#verifierMs,
        agentExtendedMs: this.#agentExtendedMs,
        verifierExtendedMs: this.#verifierExtendedMs,
      },
      tries: this.#attempt.tries ?? [],
      imageId: this.imageId,
      files: this.#files,
    };
  }

  #finalStatus(): AttemptResult["status"] {
    if (this.#status === "cancelled") return "cancelled";
    if (this.#failure === null) return "scored";
    if (this.#failure.class === "ungradable") return "unscored";
    const { steps } = this.#attempt.task;
    // Separate verifiers find all they need in the folder. A shared one needs the container, which is gone, and so do further steps.
    const isKept =
      this.stage === "verify" &&
      this.#steps.length === steps.length &&
      steps.every(({ verifier }) => verifier.mode === "separate");
    return isKept ? "unscored" : "infrastructure";
  }
}

type UsedResources = Pick<AttemptResult["resources"], "peakMemoryBytes" | "cpuMs" | "throttledMs">;

const PEAK: CounterFiles = {
  2: ["/sys/fs/cgroup/memory.peak"],
  1: ["/sys/fs/cgroup/memory/memory.max_usage_in_bytes"],
};

/** Resources that a container has used so far, as its kernel counts them. Null for each that the kernel does not report. */
export async function readResources(sandbox: Sandbox): Promise<UsedResources> {
  const [peak, processors] = await Promise.all([readCounter(sandbox, PEAK), readProcessorCounts(sandbox)]);
  return {
    peakMemoryBytes: asNumber(peak),
    cpuMs: processors.usedMs,
    throttledMs: processors.throttledMs,
  };
}

/** Adds up the use of several containers, or of one that was started again: then the kernel counts from the beginning. */
function usedTogether(one: UsedResources, other: UsedResources): UsedResources {
  return {
    peakMemoryBytes:
      one.peakMemoryBytes === null
        ? other.peakMemoryBytes
        : Math.max(one.peakMemoryBytes, other.peakMemoryBytes ?? 0),
    cpuMs: sumOfKnown(one.cpuMs, other.cpuMs),
    throttledMs: sumOfKnown(one.throttledMs, other.throttledMs),
  };
}

/** Null if neither is known. */
function sumOfKnown(one: number | null, other: number | null): number | null {
  return one === null ? other : one + (other ?? 0);
}
