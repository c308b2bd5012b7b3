import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { type BrigError, isBrigError } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { errnoOf } from "../../lib/errno.js";
import type { ContainerState, Engine } from "../../sandbox/index.js";
import { FULL_DISK_BYTES } from "../../sandbox/index.js";
import { isLocal, measureMachine } from "./admission/admission.js";
import type { AttemptStage } from "./attempt/attempt.js";
import { UnhealthyContainer } from "./place/prepare-environment.js";
import type { AttemptFailure } from "./results/attempt-result.js";

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

/** Why an attempt could not go on. */
type FailureCause =
  | ({ kind: "infrastructure" } & AttemptFailure)
  /** Programs in the container caused it, by using more memory than the task's limit or otherwise. */
  | { kind: "memory-limit" | "own-doing"; message: string; evidence: string[] };

/** Share of the machine's memory. A kill that left less than this was not due to a limit alone. */
const scarceShare = 0.05;

/** Null for what is the fault of the task or of brig. */
export function classifyFailure(facts: Facts): FailureCause | null {
  const found = classOf(facts);
  if (found === null) return null;
  const evidence = evidenceOf(facts);
  const { message } = found;
  if (found.class === "memory-limit" || found.class === "own-doing")
    return { kind: found.class, message, evidence };
  return { kind: "infrastructure", class: found.class, message, evidence };
}

interface Found {
  class: AttemptFailure["class"] | "memory-limit" | "own-doing";
  message: string;
}

function classOf(facts: Facts): Found | null {
  const { error, engineError, freeDiskBytes } = facts;
  if (saysDiskFull(error)) return { class: "disk-full", message: "a disk is full" };
  if (error instanceof UnhealthyContainer) return { class: "healthcheck-failed", message: error.message };
  if (!isBrigError(error)) return null;
  if (modelCodes.includes(error.code)) return { class: "model-endpoint", message: error.message };
  if (engineError !== null) return { class: "engine-gone", message: "the container engine does not answer" };
  if (!engineCodes.includes(error.code)) return byStage(error, facts);
  if (freeDiskBytes !== null && freeDiskBytes < FULL_DISK_BYTES)
    return { class: "disk-full", message: "the disk of the container engine is full" };
  return endOfContainer(error, facts) ?? byStage(error, facts);
}

const modelCodes = ["model.auth", "model.quota", "model.rate-limit", "model.unreachable"];
const engineCodes = ["sandbox.gone", "engine.failed", "engine.unreachable"];

/** Classifies a failure without any evidence, by the operation that failed and its stage. */
function byStage(error: BrigError, { stage }: Facts): Found | null {
  const { code, message } = error;
  if (code === "image.missing" || code === "image.build-failed") return { class: "image-failed", message };
  if (code === "engine.unreachable" || (code === "sandbox.gone" && error.reason === "engine"))
    return { class: "engine-gone", message: "the container engine failed, and answers again" };
  if (code === "engine.failed" && stage === "image") return { class: "image-failed", message };
  const isStart = ["policy.not-enforced", "protocol.invalid", ...engineCodes].includes(code);
  if (stage === "verify" && isStart) return { class: "verifier-start-failed", message };
  if (code === "engine.failed") return { class: "engine-gone", message };
  return code === "sandbox.gone" ? { class: "sandbox-gone", message } : null;
}

/**
 * Why the container does not run any more. Unless it is known that somebody outside has ended it, what ran in it did: root in
 * a container can end its first process by itself, and would otherwise get another try for that.
 */
function endOfContainer(error: BrigError, facts: Facts): Found | null {
  if (error.code !== "sandbox.gone" || error.reason === "engine" || error.reason === "closed") return null;
  const { container, events } = facts;
  if (error.reason === "lease" || error.reason === "restarted")
    return { class: "sandbox-gone", message: error.message };
  if (error.reason === "machine-share") return { class: "own-doing", message: error.message };
  if (container === null || container === "removed") {
    const removed: Found = { class: "sandbox-gone", message: "the container was removed from outside" };
    return memoryCause(facts) ?? (container === null ? null : removed);
  }
  if (container.running)
    return { class: "own-doing", message: "the sandbox failed, and its container still runs" };
  const sinceStart = events?.slice(events.lastIndexOf("start") + 1) ?? [];
  if (sinceStart.some((event) => event === "kill" || event === "stop"))
    return { class: "sandbox-gone", message: "the container was killed from outside" };
  const memory = memoryCause(facts);
  if (memory !== null) return memory;
  const ending = `the container ended with exit code ${container.exitCode}`;
  if (events === null) return { class: "sandbox-gone", message: ending };
  return sinceStart.includes("die")
    ? { class: "own-doing", message: `${ending}, and nobody outside had ended it` }
    : { class: "engine-gone", message: `${ending} when the engine was started anew` };
}

/** Cause of the container's end, if that was a lack of memory. The kernel's log is the only certain source. */
function memoryCause({ error, container, kills, memory }: Facts): Found | null {
  const host: Found = { class: "host-out-of-memory", message: "the machine ran out of memory" };
  const limit: Found = { class: "memory-limit", message: "the memory limit of the task was reached" };
  const known = container === "removed" ? null : container;
  const isOutOfMemory =
    known?.oomKilled === true || (isBrigError(error, "sandbox.gone") && error.reason === "oom");
  const last = kills?.at(-1);
  if (last !== undefined && (isOutOfMemory || known?.exitCode === 137)) {
    const isOwnLimit = last.isByLimit && known !== null && (last.limitedGroup ?? "").includes(known.id);
    return isOwnLimit ? limit : host;
  }
  if (!isOutOfMemory) return null;
  const isScarce = memory !== null && memory.availableBytes < memory.totalBytes * scarceShare;
  return isScarce ? host : limit;
}

function saysDiskFull(error: unknown): boolean {
  return causesOf(error).some((cause) => {
    const errno = isBrigError(cause) ? cause.errno : errnoOf(cause);
    return errno === "ENOSPC" || errno === "EDQUOT";
  });
}

/** The findings, in lines for people. */
function evidenceOf(facts: Facts): string[] {
  const { engineError, container, events, kills, memory, memoryLimitBytes, freeDiskBytes } = facts;
  const lines = causesOf(facts.error).map((cause) =>
    isBrigError(cause) ? `${cause.code}: ${cause.message}` : cause.message,
  );
  if (engineError !== null) lines.push(`engine: ${engineError}`);
  if (container === "removed") lines.push("container: removed");
  else if (container !== null) {
    const state = container.running ? "running" : `exit code ${container.exitCode}`;
    const more = [container.oomKilled ? "killed for want of memory" : "", container.error];
    lines.push(["container: ", [state, ...more.filter((one) => one !== "")].join(", ")].join(""));
  }
  if (events !== null) lines.push(`events: ${events.slice(-8).join(", ")}`);
  for (const kill of kills?.slice(-3) ?? [])
    lines.push(
      kill.isByLimit
        ? `kernel: a process was killed at the memory limit of ${kill.limitedGroup}`
        : "kernel: a process was killed because the machine had no memory left",
    );
  if (memoryLimitBytes !== null) lines.push(`memory limit: ${formatBytes(memoryLimitBytes)}`);
  if (memory !== null) {
    const stalled = memory.stalledPercent === null ? "" : `, ${memory.stalledPercent} % of the time stalled`;
    lines.push(
      `machine: ${formatBytes(memory.availableBytes)} of ${formatBytes(memory.totalBytes)} available${stalled}`,
    );
  }
  if (freeDiskBytes !== null) lines.push(`disk: ${formatBytes(freeDiskBytes)} free`);
  return lines;
}

/** The error and its causes, but not more than a reader would want to see. */
function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let cause = error; cause instanceof Error && causes.length < 5; cause = cause.cause)
    causes.push(cause);
  return causes;
}

/** Facts gathered after a failure. */
export interface Facts {
  error: unknown;
  stage: AttemptStage;
  /** Null if it answers; otherwise why not. */
  engineError: string | null;
  /** Null if there was none. */
  container: KnownContainer | "removed" | null;
  /** Events of the container that the engine remembers; null if it was not asked or does not say. */
  events: readonly string[] | null;
  /** Kills of processes of this container; null if the kernel's log cannot be read. */
  kills: readonly MemoryKill[] | null;
  memoryLimitBytes: number | null;
  /** Null for an engine on another machine. */
  memory: { totalBytes: number; availableBytes: number; stalledPercent: number | null } | null;
  freeDiskBytes: number | null;
}

type KnownContainer = Pick<ContainerState, "id" | "running" | "exitCode" | "oomKilled" | "error">;

/** A process that the kernel killed because memory was short. */
interface MemoryKill {
  /** Whether a limit was reached; otherwise the whole machine had no memory left. */
  isByLimit: boolean;
  /** The control group whose limit was reached; null without one. */
  limitedGroup: string | null;
  /** The control group of the process. */
  group: string;
}

/** A longer record would be no message of the kernel. */
const maxRecordBytes = 8192;
const maxRecords = 200_000;

/** All kills that the kernel still remembers; null if this user may not read its log. */
async function readMemoryKills(): Promise<MemoryKill[] | null> {
  let log: FileHandle;
  try {
    log = await open("/dev/kmsg", constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  const kills: MemoryKill[] = [];
  try {
    for (let count = 0; count < maxRecords; count++) {
      const record = await readRecord(log);
      if (record === null) break;
      const kill = parseMemoryKill(record);
      if (kill !== null) kills.push(kill);
    }
  } finally {
    await log.close();
  }
  return kills;
}

/** Null at the end. */
async function readRecord(log: FileHandle): Promise<string | null> {
  try {
    const { bytesRead, buffer } = await log.read(Buffer.alloc(maxRecordBytes), 0, maxRecordBytes, null);
    return bytesRead === 0 ? null : buffer.toString("latin1", 0, bytesRead);
  } catch (error) {
    // The record was overwritten before it was read.
    if (errnoOf(error) === "EPIPE") return "";
    return null;
  }
}

/** The name of the process, which it can choose itself, comes last: what is before it is the kernel's own. */
export function parseMemoryKill(record: string): MemoryKill | null {
  const found =
    /^[^;]*;oom-kill:constraint=(\w+),nodemask=[^,]*(?:,\d[^,]*)*,cpuset=[^,]*,mems_allowed=[\d,-]*,(?:global_oom|oom_memcg=([^,]*)),task_memcg=([^,]*),/.exec(
      record,
    );
  if (found === null) return null;
  const [, constraint = "", limitedGroup = null, group = ""] = found;
  return { isByLimit: constraint === "CONSTRAINT_MEMCG", limitedGroup, group };
}
