import type { AttemptRow, RunHeader } from "../../view/view-model.js";
import type { PageState, RewardRange, RowFilter, SortKey } from "../page-state.js";

export interface ChosenRow {
  at: number;
  row: AttemptRow;
}

/** The rows that the filter leaves, in the order of the table. Rows that are equal stay in the order of the results. */
export function chooseRows(
  { rows, header }: { rows: readonly AttemptRow[]; header: RunHeader },
  { filter, sort }: Pick<PageState, "filter" | "sort">,
): ChosenRow[] {
  const chosen = rows.flatMap((row, at) => (matches(row, filter, header.tags) ? [{ at, row }] : []));
  const key = keys[sort.by];
  const direction = sort.isDescending ? -1 : 1;
  return chosen.sort((a, b) => compare(key(a.row), key(b.row), direction) || a.at - b.at);
}

/** The tags in a run, in the order of the alphabet. */
export function tagsOf({ tags }: RunHeader): string[] {
  return [...new Set(Object.values(tags).flat())].toSorted();
}

function matches(row: AttemptRow, filter: RowFilter, tags: RunHeader["tags"]): boolean {
  return (
    (filter.status === "" || row.status === filter.status) &&
    (filter.cause === "" || row.cause === filter.cause) &&
    (filter.task === "" || row.task === filter.task) &&
    (filter.tag === "" || (Object.hasOwn(tags, row.task) && tags[row.task]?.includes(filter.tag) === true)) &&
    isInRange(row.reward, filter.reward) &&
    hasText(row, filter.text.trim().toLowerCase())
  );
}

function isInRange(reward: number | null, range: RewardRange): boolean {
  switch (range) {
    case "":
      return true;
    case "none":
      return reward === null;
    case "full":
      return reward !== null && reward >= 1;
    case "zero":
      return reward !== null && reward <= 0;
    case "partial":
      return reward !== null && reward > 0 && reward < 1;
    default:
      return range satisfies never;
  }
}

function hasText(row: AttemptRow, text: string): boolean {
  if (text === "") return true;
  return [row.task, row.agent, row.model, row.cause, row.status].some(
    (field) => field?.toLowerCase().includes(text) === true,
  );
}

const keys: Record<SortKey, (row: AttemptRow) => string | number | null> = {
  task: ({ task }) => task,
  status: ({ status }) => status,
  reward: ({ reward }) => reward,
  cause: ({ cause }) => cause,
  pass: ({ passKind }) => passKind,
  time: ({ wallMs }) => wallMs,
  tokens: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  cost: ({ costUsd }) => costUsd,
  calls: ({ toolCalls }) => toolCalls,
  started: ({ startedAt }) => startedAt,
};

/** Rows without a value come last in both directions. */
function compare(a: string | number | null, b: string | number | null, direction: 1 | -1): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a === b ? 0 : (a < b ? -1 : 1) * direction;
}
