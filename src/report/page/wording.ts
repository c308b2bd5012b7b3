import { formatDuration } from "../../lib/time/durations.js";
import type { Estimate } from "../statistics/mean-interval.js";

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

/** "0.58 (0.41 to 0.75)": with the 95 % interval. */
export function estimateText(estimate: Estimate | null): string {
  if (estimate === null) return "–";
  const { value, low, high } = estimate;
  const interval = low === null || high === null ? "" : ` (${rewardText(low)} to ${rewardText(high)})`;
  return `${rewardText(value)}${interval}`;
}

export function chanceText(chance: number): string {
  return chance < 0.0001 ? "less than 0.0001" : chance.toFixed(4);
}
