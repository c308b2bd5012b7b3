import { useMemo } from "preact/hooks";
import type { AttemptRow } from "../../view/view-model.js";
import type { Navigation } from "../page-state.js";
import { noFilter } from "../page-state.js";
import type { ShownRun } from "../sources/run-source.js";
import { causeText, costText, countText, durationText } from "../wording.js";
import { type Bar, BarChart, NameChart } from "./bar-chart.js";
import { bins, median, rewardBins } from "./bins.js";

export function ChartsView({ run, navigation }: { run: ShownRun; navigation: Navigation }) {
  const { rows } = run;
  const charts = useMemo(
    () => ({
      rewards: rewardBins(rows.map(({ reward }) => reward)),
      times: distribution(
        rows.map(({ wallMs }) => wallMs),
        durationText,
      ),
      tokens: distribution(
        rows.map(({ inputTokens, outputTokens }) => inputTokens + outputTokens),
        (tokens) => countText(Math.round(tokens)),
      ),
      costs: distribution(
        rows.flatMap(({ costUsd }) => costUsd ?? []),
        costText,
      ),
      causes: causeCounts(rows),
    }),
    [rows],
  );
  const scored = rows.filter(({ reward }) => reward !== null).length;
  const causes = charts.causes.map(
    ([cause, count]): Bar => ({
      label: causeText(cause),
      count,
      href: navigation.link({ view: "attempts", filter: { ...noFilter, cause } }),
    }),
  );
  const failed = causes.reduce((sum, { count }) => sum + count, 0);
  return (
    <div class="charts">
      <BarChart
        title="Reward"
        summary={`${countText(scored)} of ${countText(rows.length)} attempts have a reward.`}
        unit="Reward"
        bars={charts.rewards}
      />
      <NameChart
        title="Causes"
        summary={`${countText(failed)} attempts did not get the full reward.`}
        unit="Cause"
        bars={causes}
      />
      <BarChart title="Time" unit="Time of an attempt" {...charts.times} />
      <BarChart title="Tokens" unit="Tokens of an attempt" {...charts.tokens} />
      <BarChart title="Cost" unit="Cost of an attempt" {...charts.costs} />
    </div>
  );
}

function distribution(
  values: readonly number[],
  wording: (value: number) => string,
): { summary: string; bars: Bar[] } {
  const middle = median(values);
  if (middle === null) return { summary: "It is known of no attempt.", bars: [] };
  const largest = values.reduce((a, b) => Math.max(a, b), 0);
  return {
    summary: `The median is ${wording(middle)}, the most ${wording(largest)}.`,
    bars: bins(values).map(({ from, to, count }) => ({
      label: `${wording(from)} – ${wording(to)}`,
      mark: wording(from),
      count,
    })),
  };
}

function causeCounts(rows: readonly AttemptRow[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { cause } of rows) if (cause !== null) counts.set(cause, (counts.get(cause) ?? 0) + 1);
  return [...counts].toSorted(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1));
}
