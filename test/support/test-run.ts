import { readFileSync } from "node:fs";
import { startTime } from "../../src/lib/owner.js";

/** Containers, volumes and networks that tests make themselves carry this label; its value says which run they belong to. */
export const testLabel = "brig.test";

const variable = "BRIG_TEST_RUN";

/** Names this process's run. Its workers inherit the name. */
export function beginTestRun(): void {
  process.env[variable] ??= runId(process.pid);
}

/** The labels for whatever a test makes in an engine, so that it can be found when the test leaves it behind. */
export function testLabels(): Record<string, string> {
  return { [testLabel]: process.env[variable] ?? runId(process.pid) };
}

/** True when the label's value names a run whose process has ended. Values of another form are not ours. */
export function isEndedRun(value: string | undefined): boolean {
  const [, pid, start] = /^run-(\d+)-(\d*)$/.exec(value ?? "") ?? [];
  return pid !== undefined && startOf(Number(pid)) !== start;
}

/** True when `pid` is this process, one that descends from it, or one that was started in this run and has lost its parent. */
export function isOurs(pid: number): boolean {
  for (let current = pid; current > 1; current = parentOf(current)) if (current === process.pid) return true;
  return environmentOf(pid).includes(`${variable}=${testLabels()[testLabel]}`);
}

function runId(pid: number): string {
  return `run-${pid}-${startOf(pid)}`;
}

function startOf(pid: number): string {
  return startTime(statOf(pid)) ?? "";
}

function parentOf(pid: number): number {
  const stat = statOf(pid);
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] ?? 0);
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
  } catch {
    return [];
  }
}

function statOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return "";
  }
}
