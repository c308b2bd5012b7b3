import { readFile } from "node:fs/promises";
import { isBrigError } from "../../../errors.js";
import type { Engine } from "../../../sandbox/index.js";
import { isLocal, measureMachine } from "../admission/machine.js";
import type { AttemptStage } from "../attempt/attempt.js";
import type { AttemptFailure } from "../results/attempt-result.js";
import { classifyFailure, type FailureCause } from "./classify.js";
import type { Facts } from "./facts.js";
import { readMemoryKills } from "./kernel-log.js";

const STACK_LINES = 6;

export interface FailedAttempt {
  error: unknown;
  /** Stage in which the attempt failed. */
  stage: AttemptStage;
  /** Null if there was no container. Explain the failure before the container is removed. */
  containerId: string | null;
  memoryLimitBytes: number | null;
}

/**
 * Asks the engine and the kernel why an attempt could not go on. Null for what is the fault of the task or of brig. Never
 * throws: what cannot be found out is left out of the evidence.
 */
export async function explainFailure(engine: Engine, failed: FailedAttempt): Promise<FailureCause | null> {
  return classifyFailure(await gatherFacts(engine, failed));
}

/** Failure to record in the result when the task or brig is at fault. */
export function ungradable(error: unknown): AttemptFailure {
  const message = error instanceof Error ? error.message : String(error);
  if (isBrigError(error))
    return { class: "ungradable", message, evidence: error.hint === undefined ? [] : [error.hint] };
  // A fault of brig's, which somebody will want to find.
  const stack = error instanceof Error ? (error.stack ?? "").split("\n").slice(1, STACK_LINES) : [];
  return { class: "ungradable", message, evidence: stack.map((line) => line.trim()) };
}

/** Like `explainFailure`, for use when no agent or tests are left to be blamed. Null for what is the fault of the task or of brig. */
export async function infrastructureFailure(
  engine: Engine,
  failed: FailedAttempt,
): Promise<AttemptFailure | null> {
  const cause = await explainFailure(engine, failed);
  if (cause === null) return null;
  const { message, evidence } = cause;
  return { class: cause.kind === "infrastructure" ? cause.class : "sandbox-gone", message, evidence };
}

async function gatherFacts(engine: Engine, failed: FailedAttempt): Promise<Facts> {
  const { error, stage, containerId, memoryLimitBytes } = failed;
  const engineError = await engine.health().then(
    () => null,
    (reason: Error) => reason.message,
  );
  const unknown = { container: null, events: null };
  const found = containerId === null ? unknown : await askAbout(engine, containerId).catch(() => unknown);
  const host = await hostFacts(engine, containerId);
  return { error, stage, engineError, memoryLimitBytes, ...found, ...host };
}

async function askAbout(engine: Engine, id: string): Promise<Pick<Facts, "container" | "events">> {
  const container = (await engine.inspectContainer(id)) ?? "removed";
  const events = await engine.containerEvents(id).catch(() => null);
  return { container, events: events?.map(({ action }) => action) ?? null };
}

async function hostFacts(
  engine: Engine,
  containerId: string | null,
): Promise<Pick<Facts, "kills" | "memory" | "freeDiskBytes">> {
  // The engine may never have said where it is.
  if (!(await isLocal(engine).catch(() => false))) return { kills: null, memory: null, freeDiskBytes: null };
  const [machine, kills, stalledPercent] = await Promise.all([
    measureMachine(engine),
    readMemoryKills(),
    memoryStall(),
  ]);
  const { memoryBytes, availableMemoryBytes, freeDiskBytes } = machine;
  return {
    kills: kills?.filter(({ group }) => containerId !== null && group.includes(containerId)) ?? null,
    memory:
      availableMemoryBytes === null
        ? null
        : { totalBytes: memoryBytes, availableBytes: availableMemoryBytes, stalledPercent },
    freeDiskBytes,
  };
}

/** The share of the last ten seconds in which all programs waited for memory; null on kernels that do not say. */
async function memoryStall(): Promise<number | null> {
  const text = await readFile("/proc/pressure/memory", "latin1").catch(() => "");
  const found = /^full avg10=([\d.]+)/m.exec(text)?.[1];
  return found === undefined ? null : Number(found);
}
