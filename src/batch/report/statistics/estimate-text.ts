import type { Estimate } from "./mean-interval.js";

/** With fewer tasks, an interval says more about their number than about the agent. */
const FEW_TASKS = 10;

/** "0.583 (95 % interval 0.410–0.750)", and that the tasks are few if they are. Without an interval, the number alone. */
export function estimateText({ value, low, high }: Estimate, tasks: number): string {
  if (low === null || high === null) return value.toFixed(3);
  const few = tasks < FEW_TASKS ? `; ${tasks} tasks are few` : "";
  return `${value.toFixed(3)} (95 % interval ${low.toFixed(3)}–${high.toFixed(3)}${few})`;
}
