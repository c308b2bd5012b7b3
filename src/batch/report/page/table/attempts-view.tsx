import { useMemo, useRef, useState } from "preact/hooks";
import type { AttemptRow } from "../../view/view-model.js";
import type { Navigation, SortKey } from "../page-state.js";
import type { ShownRun } from "../sources/run-source.js";
import {
  causeText,
  costText,
  countText,
  durationText,
  passText,
  rewardText,
  statusClass,
  timeText,
} from "../wording.js";
import { type ChosenRow, chooseRows } from "./choose-rows.js";
import { FilterBar } from "./filter-bar.js";
import { RunFigures } from "./run-figures.js";
import { ROW_HEIGHT, useVisibleRows } from "./visible-rows.js";

interface Column {
  key: SortKey;
  title: string;
  isNumber: boolean;
  text: (row: AttemptRow) => string;
}

const columns: readonly Column[] = [
  { key: "status", title: "Status", isNumber: false, text: ({ status }) => status },
  { key: "reward", title: "Reward", isNumber: true, text: ({ reward }) => rewardText(reward) },
  { key: "cause", title: "Cause", isNumber: false, text: ({ cause }) => causeText(cause) },
  { key: "time", title: "Time", isNumber: true, text: ({ wallMs }) => durationText(wallMs) },
  {
    key: "tokens",
    title: "Tokens",
    isNumber: true,
    text: ({ inputTokens, outputTokens }) => countText(inputTokens + outputTokens),
  },
  { key: "cost", title: "Cost", isNumber: true, text: ({ costUsd }) => costText(costUsd) },
  { key: "calls", title: "Calls", isNumber: true, text: ({ toolCalls }) => countText(toolCalls) },
  { key: "started", title: "Started", isNumber: false, text: ({ startedAt }) => timeText(startedAt) },
  { key: "pass", title: "Passed", isNumber: false, text: ({ passKind }) => passText(passKind) },
];

interface AttemptsProps {
  run: ShownRun;
  isLive: boolean;
  navigation: Navigation;
}

export function AttemptsView({ run, isLive, navigation }: AttemptsProps) {
  const { filter, sort } = navigation.state;
  const chosen = useMemo(() => chooseRows(run, { filter, sort }), [run, filter, sort]);
  return (
    <>
      <RunFigures run={run} isLive={isLive} />
      <FilterBar run={run} navigation={navigation} />
      <p role="status" class="shown">
        {countText(chosen.length)} of {countText(run.rows.length)} attempts shown
      </p>
      <AttemptsTable chosen={chosen} navigation={navigation} />
      {run.header.settings.length > 0 && (
        <details class="settings">
          <summary>Settings of the run</summary>
          <table>
            <caption class="visually-hidden">Settings of the run</caption>
            <tbody>
              {run.header.settings.map(({ name, value }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>{value}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </>
  );
}

function AttemptsTable({ chosen, navigation }: { chosen: readonly ChosenRow[]; navigation: Navigation }) {
  const scroller = useRef<HTMLDivElement>(null);
  const { from, to } = useVisibleRows(scroller, chosen.length);
  const [active, setActive] = useState(0);
  // Tab leads to one row only; the arrow keys lead to the others.
  const reachable = active >= from && active < to ? active : from;
  const onKeyDown = (event: KeyboardEvent) => {
    const focused = Number((event.target as HTMLElement).dataset.place ?? Number.NaN);
    const next = nextPlace(event.key, {
      place: focused,
      page: pageOf(scroller.current),
      count: chosen.length,
    });
    if (next === null) return;
    event.preventDefault();
    setActive(next);
    focusRow(scroller.current, next);
  };
  return (
    <div class="scroller" ref={scroller}>
      <table class="attempts" aria-rowcount={chosen.length + 1} onKeyDown={onKeyDown}>
        <caption class="visually-hidden">
          Attempts. The arrow keys, Page Up, Page Down, Home and End move between the rows, Enter opens one.
        </caption>
        <thead>
          <tr aria-rowindex={1}>
            <SortHeader column="task" title="Task" navigation={navigation} />
            {columns.map(({ key, title, isNumber }) => (
              <SortHeader key={key} column={key} title={title} isNumber={isNumber} navigation={navigation} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer rows={from} />
          {chosen.slice(from, to).map(({ at, row }, index) => (
            <Row
              key={at}
              row={row}
              place={from + index}
              isReachable={from + index === reachable}
              href={navigation.link({
                view: "attempt",
                attempt: { task: row.task, number: row.attempt },
                tab: "overview",
              })}
            />
          ))}
          <Spacer rows={chosen.length - to} />
        </tbody>
      </table>
    </div>
  );
}

/** Takes the place of rows that are not in the document. */
function Spacer({ rows }: { rows: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: the row is empty, and nothing in it takes the focus
    <tr aria-hidden="true" class="spacer">
      <td colSpan={columns.length + 1} style={{ height: `${rows * ROW_HEIGHT}px` }} />
    </tr>
  );
}

interface RowProps {
  row: AttemptRow;
  place: number;
  isReachable: boolean;
  href: string;
}

function Row({ row, place, isReachable, href }: RowProps) {
  return (
    <tr aria-rowindex={place + 2}>
      <th scope="row">
        <a href={href} data-place={place} tabIndex={isReachable ? 0 : -1}>
          {row.task} <span class="number">#{row.attempt}</span>
        </a>
      </th>
      {columns.map(({ key, isNumber, text }) => (
        <td key={key} class={cellClass(key, { row, isNumber })}>
          {text(row)}
        </td>
      ))}
    </tr>
  );
}

function cellClass(key: SortKey, { row, isNumber }: { row: AttemptRow; isNumber: boolean }): string {
  if (key === "status") return statusClass(row);
  if (key === "reward" && row.reward !== null) return row.reward >= 1 ? "number good" : "number bad";
  return isNumber ? "number" : "";
}

interface SortHeaderProps {
  column: SortKey;
  title: string;
  isNumber?: boolean;
  navigation: Navigation;
}

function SortHeader({ column, title, isNumber = false, navigation }: SortHeaderProps) {
  const { sort } = navigation.state;
  const isSorted = sort.by === column;
  const order = sort.isDescending ? "descending" : "ascending";
  // Numbers are sorted from the largest at first, since that is what is looked for.
  const sortBy = () =>
    navigation.go(
      { sort: { by: column, isDescending: isSorted ? !sort.isDescending : isNumber } },
      { replace: true },
    );
  return (
    <th scope="col" aria-sort={isSorted ? order : undefined} class={isNumber ? "number" : ""}>
      <button type="button" class="sort" onClick={sortBy}>
        {title}
        <span aria-hidden="true">{isSorted ? (sort.isDescending ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

function nextPlace(
  key: string,
  { place, page, count }: { place: number; page: number; count: number },
): number | null {
  if (Number.isNaN(place)) return null;
  const moves: Record<string, number> = {
    ArrowDown: place + 1,
    ArrowUp: place - 1,
    PageDown: place + page,
    PageUp: place - page,
    Home: 0,
    End: count - 1,
  };
  const next = moves[key];
  return next === undefined ? null : Math.min(Math.max(next, 0), count - 1);
}

function pageOf(scroller: HTMLElement | null): number {
  return Math.max(1, Math.floor((scroller?.clientHeight ?? 0) / ROW_HEIGHT) - 2);
}

/** Scrolls to a row, and gives it the focus as soon as it is in the document. */
function focusRow(scroller: HTMLElement | null, place: number): void {
  if (scroller === null) return;
  const top = place * ROW_HEIGHT;
  const room = scroller.clientHeight - 2 * ROW_HEIGHT;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
  const focus = (triesLeft: number) => {
    const link = scroller.querySelector<HTMLElement>(`[data-place="${place}"]`);
    if (link !== null) link.focus({ preventScroll: true });
    else if (triesLeft > 0) requestAnimationFrame(() => focus(triesLeft - 1));
  };
  focus(10);
}
