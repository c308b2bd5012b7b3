import { type BrigError, isBrigError } from "../../../errors.js";
import { errnoOf } from "../../../lib/errno.js";
import { FULL_DISK_BYTES } from "../../../sandbox/index.js";
import { UnhealthyContainer } from "../place/healthcheck.js";
import type { AttemptFailure } from "../results/attempt-result.js";
import { causesOf, evidenceOf } from "./evidence-lines.js";
import type { Facts } from "./facts.js";

/** Why an attempt could not go on. */
export type FailureCause =
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
