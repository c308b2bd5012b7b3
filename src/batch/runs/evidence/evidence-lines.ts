import { isBrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import type { Facts } from "./facts.js";

/** The findings, in lines for people. */
export function evidenceOf(facts: Facts): string[] {
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
export function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let cause = error; cause instanceof Error && causes.length < 5; cause = cause.cause)
    causes.push(cause);
  return causes;
}
