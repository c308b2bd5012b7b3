import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Navigation } from "./page-state.js";
import type { Refused } from "./service.js";
import { countText } from "./wording.js";

/** What every view of the page gets. */
export interface ViewProps {
  navigation: Navigation;
  /** Gets the focus when the view is opened. */
  heading: RefObject<HTMLHeadingElement | null>;
  /** Called when the service does not take the token any more. */
  onRefused: () => void;
}

/** Leaves the view when the token is refused. */
export function useRefusal(problem: Refused | null, onRefused: () => void): void {
  const isRefused = problem?.status === 401;
  useEffect(() => {
    if (isRefused) onRefused();
  }, [isRefused, onRefused]);
}

export function Problem({ problem }: { problem: Refused | null }) {
  if (problem === null) return null;
  return (
    <p role="alert">
      Nothing new since the last answer: {problem.message}. The page asks again every two seconds.
    </p>
  );
}

export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export interface Column<Row> {
  title: string;
  isNumber?: boolean;
  cell: (row: Row) => ComponentChildren;
}

interface CardTableProps<Row> {
  caption: string;
  /** The first one has the names of the rows. */
  columns: readonly [Column<Row>, ...Column<Row>[]];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
}

/** Spelled out, because some browsers forget what a table is when its style shows it as something else. */
const roles = {
  table: { role: "table" },
  group: { role: "rowgroup" },
  row: { role: "row" },
  head: { role: "columnheader" },
  name: { role: "rowheader" },
  cell: { role: "cell" },
} as const;

/** A table, of which a narrow screen shows each row as a card. */
export function CardTable<Row>({ caption, columns, rows, keyOf }: CardTableProps<Row>) {
  const [name, ...others] = columns;
  return (
    <table class="cards" {...roles.table}>
      <caption class="visually-hidden">{caption}</caption>
      <thead {...roles.group}>
        <tr {...roles.row}>
          {columns.map(({ title, isNumber }) => (
            <th key={title} scope="col" class={isNumber ? "number" : ""} {...roles.head}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody {...roles.group}>
        {rows.map((row) => (
          <tr key={keyOf(row)} {...roles.row}>
            <th scope="row" {...roles.name}>
              {name.cell(row)}
            </th>
            {others.map(({ title, isNumber, cell }) => (
              <td key={title} data-title={title} class={isNumber ? "number" : ""} {...roles.cell}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface PagerProps {
  /** What the rows are. */
  of: string;
  from: number;
  shown: number;
  count: number;
  /** The most rows at a time. */
  size: number;
  navigation: Navigation;
}

export function Pager({ of, from, shown, count, size, navigation }: PagerProps) {
  const go = (to: number) => navigation.go({ from: Math.max(0, to) });
  const text =
    shown === 0
      ? `No ${of}${count > 0 ? ` here, of ${countText(count)}` : ""}`
      : `${countText(from + 1)} to ${countText(from + shown)} of ${countText(count)} ${of}`;
  return (
    <div class="pager">
      <p role="status">{text}</p>
      {(from > 0 || from + shown < count) && (
        <nav aria-label={`Pages of ${of}`}>
          <button type="button" disabled={from === 0} onClick={() => go(from - size)}>
            Previous
          </button>
          <button type="button" disabled={from + shown >= count} onClick={() => go(from + size)}>
            Next
          </button>
        </nav>
      )}
    </div>
  );
}

interface ConfirmationProps {
  question: string;
  /** What the button says that does it. */
  action: string;
  onAnswer: (isConfirmed: boolean) => void;
}

/** Asks before something is ended. The browser keeps the focus in it, and gives it back. */
export function Confirmation({ question, action, onAnswer }: ConfirmationProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="question" onCancel={() => onAnswer(false)}>
      <p id="question">{question}</p>
      <div class="actions">
        <button type="button" onClick={() => onAnswer(false)}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={() => onAnswer(true)}>
          {action}
        </button>
      </div>
    </dialog>
  );
}
