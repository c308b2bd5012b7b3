import type { AttemptResult, BatchStop, BatchWait } from "../../../batch/index.js";
import { estimateText, passKindOf, passKindText, passRestsOn } from "../../../batch/index.js";
import { formatBytes } from "../../../lib/bytes.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { BatchView } from "./batch-view.js";

const SHOWN_RUNNING = 3;

/** The rows of a run at a terminal. */
export function batchRows(view: BatchView, nowMs: number): string[] {
  const wait = view.wait === null ? [] : [waitText(view.wait)];
  return [progressLine(view, nowMs), ...wait, ...scoreLine(view), ...runningLines(view, nowMs)];
}

/** "12 of 64 done · 4 running · 5.2 a minute · about 10 min left · $1.24" */
export function progressLine(view: BatchView, nowMs: number): string {
  const perMinute = view.perMinute(nowMs);
  const left = view.leftText(nowMs);
  const parts = [
    `${view.done} of ${view.total} done`,
    `${view.running.size} running`,
    ...(perMinute === null ? [] : [`${perMinute.toPrecision(2)} a minute`]),
    ...(left === "" ? [] : [left]),
    ...(view.costUsd > 0 ? [`$${view.costUsd.toFixed(2)}`] : []),
    ...(view.stop === null ? [] : [stopText(view.stop, view)]),
  ];
  return parts.join(" · ");
}

function scoreLine(view: BatchView): string[] {
  const reward = view.reward;
  const failures = [...view.failures].map(([name, count]) => `${count} ${name}`);
  const parts = [
    ...(reward === null
      ? []
      : [`reward ${estimateText(reward, view.tasks)}`, `${view.passed} of ${view.scored} passed`]),
    ...(failures.length === 0 ? [] : [`no score: ${failures.join(", ")}`]),
  ];
  return parts.length === 0 ? [] : [parts.join(" · ")];
}

function runningLines(view: BatchView, nowMs: number): string[] {
  return view.longest(SHOWN_RUNNING).map(({ task, attempt, stage, grading, sinceMs }) => {
    const at = grading === undefined ? stage : `${stage} ${grading.number} of at most ${grading.atMost}`;
    return [`  ${task} #${attempt}`, ...(at === null ? [] : [at]), formatDuration(nowMs - sinceMs)].join(
      " · ",
    );
  });
}

export function stopText(stop: BatchStop, { isStopping }: { isStopping: boolean }): string {
  if (isStopping) return "cancelling what runs";
  switch (stop.kind) {
    case "interrupted":
      return "interrupted: waiting for what runs; ctrl-C again cancels it";
    case "limit":
      return `the limit of the run's ${stop.limit} is reached: waiting for what runs`;
    case "failed":
      return `${stop.task} #${stop.attempt} did not pass: waiting for what runs`;
    default:
      return stop satisfies never;
  }
}

/** "waiting for memory: the next attempt needs 4 GiB, and 1.2 GiB are left" */
export function waitText(wait: BatchWait): string {
  switch (wait.kind) {
    case "room": {
      const { resource, needed, left } = wait;
      const amount = (value: number) =>
        resource === "cpus" ? `${value} processors` : formatBytes(Math.max(0, value));
      const name = resource === "cpus" ? "processors" : resource;
      return `waiting for ${name}: the next attempt needs ${amount(needed)}, and there are ${amount(left)} left`;
    }
    case "engine": {
      const { failed, outcomes, forMs, message } = wait;
      const said = message === null ? "" : `: ${message}`;
      return `the container engine failed ${failed} of the last ${outcomes} attempts; it is asked again in ${formatDuration(forMs)}${said}`;
    }
    case "model": {
      const { failed, forMs, message } = wait;
      const next =
        forMs === 0 ? "one attempt tries it now" : `one tries it again in ${formatDuration(forMs)}`;
      return `the model's endpoint failed in ${failed} attempts in a row; ${next}: ${message}`;
    }
    default:
      return wait satisfies never;
  }
}

/** "fix-parser #1: reward 1 in 12.3 s" */
export function resultLine(result: AttemptResult): string {
  const { task, attempt, status, reward, failure, startedAt, endedAt } = result;
  const took = formatDuration(Math.max(0, Date.parse(endedAt) - Date.parse(startedAt)));
  if (status === "scored") return `${task} #${attempt}: reward ${reward} in ${took}${passNote(result)}`;
  const why = failure === null ? status : `${failure.class}: ${failure.message}`;
  return `${task} #${attempt}: ${why}, after ${took}`;
}

/** The kind of a pass that grading in a fresh container did not confirm, and what it rests on. Empty for other results. */
function passNote(result: AttemptResult): string {
  const kind = passKindOf(result);
  if (kind === null || kind === "separate" || kind === "shared") return "";
  const [first, ...others] = passRestsOn(result);
  const on =
    first === undefined ? "" : `: ${first}${others.length === 0 ? "" : ` and ${others.length} more`}`;
  return `, ${passKindText(kind)}${on}`;
}
