import { formatDuration } from "../../../lib/time/durations.js";
import type { PassKind } from "../../runs/results/attempt-outcome.js";
import { passKindText } from "../pass-text.js";
import { type Estimate, estimateText } from "../statistics.js";
import type { AttemptRow } from "../view/view-model.js";

const causes: Record<string, string> = {
  wrong: "wrong answer",
  "timed-out": "agent out of time",
  limit: "limit reached",
  "out-of-memory": "out of its memory",
  "out-of-disk": "out of its disk space",
  "agent-failed": "agent failed",
  tampered: "reward tampered with",
  "no-reward": "no reward written",
  "invalid-reward": "invalid reward",
  "verifier-timed-out": "verifier out of time",
  unscored: "not scored",
  cancelled: "cancelled",
  "engine-gone": "engine gone",
  "image-failed": "image failed",
  "host-out-of-memory": "host out of memory",
  "disk-full": "disk full",
  "model-endpoint": "model endpoint",
  "sandbox-gone": "sandbox gone",
  "healthcheck-failed": "health check failed",
  "verifier-start-failed": "verifier did not start",
  ungradable: "cannot be graded",
};

export function causeText(cause: string | null): string {
  return cause === null ? "" : (causes[cause] ?? cause);
}

export function rewardText(reward: number | null): string {
  return reward === null ? "–" : String(Math.round(reward * 1000) / 1000);
}

export function durationText(ms: number | null): string {
  return ms === null ? "–" : formatDuration(ms);
}

export function countText(count: number): string {
  return count.toLocaleString("en");
}

export function costText(costUsd: number | null): string {
  return costUsd === null ? "–" : `$${costUsd.toFixed(costUsd < 1 ? 4 : 2)}`;
}

export function timeText(iso: string): string {
  return iso.replace("T", " ").replace(/\.\d+(?=Z)/, "");
}

/** With its 95 % interval. */
export function shownEstimate(estimate: Estimate | null, tasks: number): string {
  return estimate === null ? "–" : estimateText(estimate, tasks);
}

export function passText(kind: PassKind | null): string {
  return kind === null ? "" : passKindText(kind);
}

/** The reward decides what a scored attempt looks like. */
export function statusClass({ status, reward }: Pick<AttemptRow, "status" | "reward">): string {
  if (status !== "scored" || reward === null) return `status-${status}`;
  return reward >= 1 ? "good" : "bad";
}

export function chanceText(chance: number): string {
  return chance < 0.0001 ? "less than 0.0001" : chance.toFixed(4);
}
