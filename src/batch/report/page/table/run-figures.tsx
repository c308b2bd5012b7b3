import { useMemo } from "preact/hooks";
import { type PassKind, passKinds } from "../../../runs/results/attempt-outcome.js";
import { meanReward, passEstimates, type TaskPasses } from "../../statistics.js";
import type { AttemptRow } from "../../view/view-model.js";
import type { ShownRun } from "../sources/run-source.js";
import { costText, countText, passText, shownEstimate } from "../wording.js";

/** The run in a few numbers, and how far it is. */
export function RunFigures({ run, isLive }: { run: ShownRun; isLive: boolean }) {
  const { rows, header, unreadableLines } = run;
  const figures = useMemo(() => figuresOf(rows), [rows]);
  const planned = header.plannedAttempts;
  return (
    <>
      <dl class="figures">
        {planned !== null && planned > rows.length ? (
          <Figure
            name={isLive ? "Done so far" : "Done"}
            value={`${countText(rows.length)} of ${countText(planned)}`}
          />
        ) : (
          <Figure name="Attempts" value={countText(rows.length)} />
        )}
        {figures.map(([name, value]) => (
          <Figure key={name} name={name} value={value} />
        ))}
      </dl>
      {unreadableLines > 0 && (
        <p class="notice">
          {countText(unreadableLines)} lines of results.jsonl are not results of this version.
        </p>
      )}
    </>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function figuresOf(rows: readonly AttemptRow[]): [string, string][] {
  const tasks = new Map<string, { rewards: number[]; passed: number }>();
  const kinds = new Map<PassKind, number>();
  let [infrastructure, tokens, cost, priced] = [0, 0, 0, 0];
  for (const row of rows) {
    const task = tasks.get(row.task) ?? { rewards: [], passed: 0 };
    tasks.set(row.task, task);
    if (row.reward !== null) task.rewards.push(row.reward);
    if (row.cause === null) task.passed++;
    if (row.passKind !== null) kinds.set(row.passKind, (kinds.get(row.passKind) ?? 0) + 1);
    if (row.status === "infrastructure") infrastructure++;
    tokens += row.inputTokens + row.outputTokens;
    if (row.costUsd !== null) {
      priced++;
      cost += row.costUsd;
    }
  }
  const scores = [...tasks.values()];
  return [
    [
      "Mean reward",
      shownEstimate(
        meanReward(scores.map(({ rewards }) => rewards)),
        scores.filter(({ rewards }) => rewards.length > 0).length,
      ),
    ],
    ...passFigures(scores.map(({ rewards, passed }) => ({ scored: rewards.length, passed }))),
    ...passKinds.flatMap((kind): [string, string][] =>
      kinds.has(kind) ? [[`Passed: ${passText(kind)}`, countText(kinds.get(kind) ?? 0)]] : [],
    ),
    ["Infrastructure failures", countText(infrastructure)],
    ["Tokens", countText(tokens)],
    ["Cost", priced === 0 ? "unknown" : `${costText(cost)}${priced < rows.length ? " and unknown" : ""}`],
  ];
}

/** For one attempt, and for the most that a task has. */
function passFigures(tasks: readonly TaskPasses[]): [string, string][] {
  const most = tasks.reduce((so, { scored }) => Math.max(so, scored), 0);
  return passEstimates(tasks, [1, most]).flatMap(
    ({ k, passAt, passAll, tasks: count }): [string, string][] => [
      [`pass@${k}`, shownEstimate(passAt, count)],
      ...(k === 1 ? [] : [[`pass^${k}`, shownEstimate(passAll, count)] satisfies [string, string]]),
    ],
  );
}
