import { useMemo, useState } from "preact/hooks";
import { type Change, compareTasks, type TaskComparison, type TaskScore } from "../../compare-tasks.js";
import { mcnemar, meanDifference } from "../../statistics.js";
import type { Navigation } from "../page-state.js";
import { noFilter } from "../page-state.js";
import type { ShownRun } from "../sources/run-source.js";
import { chanceText, countText, rewardText, shownEstimate } from "../wording.js";

const changes: Record<Change, string> = {
  lost: "solved by A only",
  gained: "solved by B only",
  worse: "lower in B",
  better: "higher in B",
  same: "same",
  incomparable: "not scored in both",
};
const SHOWN_AT_ONCE = 500;

export function CompareView({ runs, navigation }: { runs: readonly ShownRun[]; navigation: Navigation }) {
  const [a, b] = runs;
  const [shown, setShown] = useState(SHOWN_AT_ONCE);
  const tasks = useMemo(() => compareTasks(a?.rows ?? [], b?.rows ?? []), [a, b]);
  const flipped = tasks.filter(({ change }) => change === "lost" || change === "gained");
  const differences = useMemo(
    () => tasks.flatMap((one) => (one.difference === null ? [] : [one.difference])),
    [tasks],
  );
  const difference = useMemo(() => meanDifference(differences), [differences]);
  const lost = flipped.filter(({ change }) => change === "lost").length;
  if (a === undefined || b === undefined) return <p>Give brig view two runs to compare them.</p>;
  return (
    <>
      <p>
        A is <strong>{a.header.name}</strong>, B is <strong>{b.header.name}</strong>. A run solves a task if
        each of its scored attempts has the full reward.
      </p>
      <p role="status" class="shown">
        {countText(flipped.length)} of {countText(tasks.length)} tasks flipped: {countText(lost)} are solved
        by A only, {countText(flipped.length - lost)} by B only.
        {flipped.length > 0 &&
          ` McNemar’s test: p = ${chanceText(mcnemar({ gained: flipped.length - lost, lost }))}.`}
        {difference !== null &&
          ` The mean reward differs by ${shownEstimate(difference, differences.length)}.`}
      </p>
      <table class="compare">
        <caption class="visually-hidden">Tasks of both runs, flipped ones first</caption>
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col">Change</th>
            <th scope="col" class="number">
              A
            </th>
            <th scope="col" class="number">
              B
            </th>
            <th scope="col" class="number">
              B − A
            </th>
          </tr>
        </thead>
        <tbody>
          {tasks.slice(0, shown).map((one) => (
            <TaskRow key={one.task} comparison={one} navigation={navigation} />
          ))}
        </tbody>
      </table>
      {tasks.length > shown && (
        <button type="button" onClick={() => setShown(shown + SHOWN_AT_ONCE)}>
          Show more of {countText(tasks.length)} tasks
        </button>
      )}
    </>
  );
}

function TaskRow({ comparison, navigation }: { comparison: TaskComparison; navigation: Navigation }) {
  const { task, change, a, b, difference } = comparison;
  const link = (run: number) => navigation.link({ view: "attempts", run, filter: { ...noFilter, task } });
  return (
    <tr>
      <th scope="row">{task}</th>
      <td class={change === "lost" ? "bad" : change === "gained" ? "good" : ""}>{changes[change]}</td>
      <td class="number">
        <Score score={a} run="A" task={task} href={link(0)} />
      </td>
      <td class="number">
        <Score score={b} run="B" task={task} href={link(1)} />
      </td>
      <td class="number">
        {difference === null ? "–" : `${difference > 0 ? "+" : ""}${rewardText(difference)}`}
      </td>
    </tr>
  );
}

interface ScoreProps {
  score: TaskScore;
  run: string;
  task: string;
  href: string;
}

function Score({ score, run, task, href }: ScoreProps) {
  if (score.attempts === 0) return <>–</>;
  return (
    <a href={href}>
      {rewardText(score.reward)} <span class="soft">{`${score.full}/${score.scored}`}</span>
      <span class="visually-hidden">{`: attempts of run ${run} at ${task}`}</span>
    </a>
  );
}
