import { useEffect, useMemo, useState } from "preact/hooks";
import type { AttemptDetail, AttemptRow } from "../../view/view-model.js";
import type { Navigation, TabName } from "../page-state.js";
import type { DetailAnswer, RunSource, ShownRun } from "../sources/run-source.js";
import { chooseRows } from "../table/choose-rows.js";
import { causeText, passText, rewardText, statusClass } from "../wording.js";
import { DiffView } from "./diff-view.js";
import { Overview } from "./overview.js";
import { Tabs } from "./tabs.js";
import { TextView } from "./text-view.js";
import { TrajectoryView } from "./trajectory-view.js";

interface AttemptProps {
  run: ShownRun;
  runNumber: number;
  source: RunSource;
  navigation: Navigation;
}

export function AttemptView({ run, runNumber, source, navigation }: AttemptProps) {
  const { attempt, filter, sort } = navigation.state;
  const at = run.rows.findIndex(
    ({ task, attempt: number }) => task === attempt.task && number === attempt.number,
  );
  const row = run.rows[at];
  const neighbours = useMemo(
    () => neighboursOf(chooseRows(run, { filter, sort }), at),
    [run, filter, sort, at],
  );
  const answer = useDetail({ source, runNumber, at, row });
  if (row === undefined)
    return (
      <>
        <Neighbours neighbours={neighbours} navigation={navigation} />
        <p>This run has no such attempt, or not yet.</p>
      </>
    );
  return (
    <>
      <Neighbours neighbours={neighbours} navigation={navigation} />
      <h2 class="attempt-title">
        {row.task} <span class="number">#{row.attempt}</span>{" "}
        <span class={`badge ${statusClass(row)}`}>{row.status}</span>{" "}
        <span class="badge">reward {rewardText(row.reward)}</span>{" "}
        {row.passKind !== null && <span class="badge">passed: {passText(row.passKind)}</span>}{" "}
        {row.cause !== null && <span class="badge">{causeText(row.cause)}</span>}
      </h2>
      <Answer row={row} answer={answer} navigation={navigation} />
    </>
  );
}

/** Asks again if the attempt was run again. Null until the answer is there. */
function useDetail(asked: {
  source: RunSource;
  runNumber: number;
  at: number;
  row: AttemptRow | undefined;
}): DetailAnswer | null {
  const { source, runNumber, at, row } = asked;
  const [answer, setAnswer] = useState<{ row: AttemptRow; answer: DetailAnswer } | null>(null);
  useEffect(() => {
    let isWanted = true;
    if (row !== undefined)
      void source.detail(runNumber, at).then((answer) => {
        if (isWanted) setAnswer({ row, answer });
      });
    return () => {
      isWanted = false;
    };
  }, [source, runNumber, at, row]);
  return answer?.row === row ? (answer?.answer ?? null) : null;
}

interface AnswerProps {
  row: AttemptRow;
  answer: DetailAnswer | null;
  navigation: Navigation;
}

function Answer({ row, answer, navigation }: AnswerProps) {
  if (answer === null) return <p role="status">Loading the details</p>;
  switch (answer.kind) {
    case "failed":
      return <p role="alert">{answer.reason}</p>;
    case "left-out":
      return (
        <p class="notice">
          The details of this attempt are not in this page, which would have become too large. Use brig view
          without -o to see them.
        </p>
      );
    case "detail":
      return (
        <Tabs
          chosen={navigation.state.tab}
          onChoose={(tab) => navigation.go({ tab }, { replace: true })}
          panels={panelsOf(row, answer.detail)}
        />
      );
    default:
      return answer satisfies never;
  }
}

function panelsOf(row: AttemptRow, detail: AttemptDetail) {
  const { folder } = detail;
  const file = (text: AttemptDetail["diff"], label: string) =>
    text === null ? (
      <p class="empty">This attempt has none.</p>
    ) : (
      <TextView text={text} label={label} file={folder} />
    );
  const panels: { tab: TabName; title: string; content: preact.ComponentChildren }[] = [
    { tab: "overview", title: "Overview", content: <Overview row={row} detail={detail} /> },
    { tab: "trajectory", title: "Trajectory", content: <TrajectoryView trajectory={detail.trajectory} /> },
    {
      tab: "diff",
      title: "Changes",
      content:
        detail.diff === null ? (
          <p class="empty">This attempt has none.</p>
        ) : (
          <DiffView diff={detail.diff} file={folder} />
        ),
    },
    { tab: "tests", title: "Test output", content: file(detail.testOutput, "Test output") },
    { tab: "output", title: "Agent output", content: file(detail.agentOutput, "Agent output") },
    { tab: "proof", title: "Policy proof", content: file(detail.proof, "Policy proof") },
  ];
  return panels;
}

interface NeighbourRows {
  previous: AttemptRow | undefined;
  next: AttemptRow | undefined;
}

/** The rows before and after this one in the table as it is filtered and sorted. */
function neighboursOf(chosen: readonly { at: number; row: AttemptRow }[], at: number): NeighbourRows {
  const place = chosen.findIndex((one) => one.at === at);
  if (place === -1) return { previous: undefined, next: chosen[0]?.row };
  return { previous: chosen[place - 1]?.row, next: chosen[place + 1]?.row };
}

function Neighbours({ neighbours, navigation }: { neighbours: NeighbourRows; navigation: Navigation }) {
  const link = ({ task, attempt }: AttemptRow) =>
    navigation.link({ view: "attempt", attempt: { task, number: attempt } });
  const { previous, next } = neighbours;
  return (
    <nav aria-label="Attempts" class="neighbours">
      <a href={navigation.link({ view: "attempts" })}>All attempts</a>
      {previous !== undefined && <a href={link(previous)}>Previous</a>}
      {next !== undefined && <a href={link(next)}>Next</a>}
    </nav>
  );
}
