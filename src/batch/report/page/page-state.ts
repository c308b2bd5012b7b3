import type { Navigation as PageNavigation } from "../../../lib/page/navigation.js";

const viewNames = ["attempts", "charts", "compare", "attempt"] as const;
export type ViewName = (typeof viewNames)[number];

const tabNames = ["overview", "trajectory", "diff", "tests", "output", "proof"] as const;
export type TabName = (typeof tabNames)[number];

export const rewardRanges = ["", "full", "partial", "zero", "none"] as const;
export type RewardRange = (typeof rewardRanges)[number];

const sortKeys = [
  "task",
  "status",
  "reward",
  "pass",
  "cause",
  "time",
  "tokens",
  "cost",
  "calls",
  "started",
] as const;
export type SortKey = (typeof sortKeys)[number];

/** Empty strings filter nothing. */
export interface RowFilter {
  text: string;
  task: string;
  status: string;
  cause: string;
  tag: string;
  reward: RewardRange;
}

/** Everything that the page's address says. */
export interface PageState {
  view: ViewName;
  /** 0, or 1 for the second of two runs. */
  run: number;
  filter: RowFilter;
  sort: { by: SortKey; isDescending: boolean };
  /** Of the attempt that is shown. */
  attempt: { task: string; number: number };
  tab: TabName;
}

export const noFilter: RowFilter = { text: "", task: "", status: "", cause: "", tag: "", reward: "" };

export const firstState: PageState = {
  view: "attempts",
  run: 0,
  filter: noFilter,
  sort: { by: "started", isDescending: false },
  attempt: { task: "", number: 1 },
  tab: "overview",
};

/** The state as a URL's fragment, without what is as at first. Nothing in it can be more than a value. */
export function fragmentOf(state: PageState): string {
  const fields = new URLSearchParams();
  const add = (name: string, value: string, usual: string) => {
    if (value !== usual) fields.set(name, value);
  };
  add("view", state.view, firstState.view);
  add("run", String(state.run), "0");
  for (const [name, value] of Object.entries(state.filter)) add(name, value, "");
  add("sort", `${state.sort.isDescending ? "-" : ""}${state.sort.by}`, firstState.sort.by);
  if (state.view === "attempt") {
    fields.set("of", state.attempt.task);
    fields.set("attempt", String(state.attempt.number));
    add("tab", state.tab, firstState.tab);
  }
  return `#${fields}`;
}

/** Reads a fragment that anybody may have written: what is unknown in it is as at first. */
export function stateOf(fragment: string): PageState {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const text = (name: string) => (fields.get(name) ?? "").slice(0, 500);
  const sort = text("sort");
  return {
    view: oneOf(viewNames, text("view"), firstState.view),
    run: text("run") === "1" ? 1 : 0,
    filter: {
      text: text("text"),
      task: text("task"),
      status: text("status"),
      cause: text("cause"),
      tag: text("tag"),
      reward: oneOf(rewardRanges, text("reward"), ""),
    },
    sort: {
      by: oneOf(sortKeys, sort.replace(/^-/, ""), firstState.sort.by),
      isDescending: sort.startsWith("-"),
    },
    attempt: { task: text("of"), number: Number(text("attempt")) || 1 },
    tab: oneOf(tabNames, text("tab"), firstState.tab),
  };
}

function oneOf<T extends string>(known: readonly T[], value: string, otherwise: T): T {
  return known.find((one) => one === value) ?? otherwise;
}

export type Navigation = PageNavigation<PageState>;
