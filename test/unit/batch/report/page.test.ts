import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareTasks } from "../../../../src/batch/report/compare-tasks.js";
import { bins, median, rewardBins } from "../../../../src/batch/report/page/charts/bins.js";
import { firstState, fragmentOf, noFilter, stateOf } from "../../../../src/batch/report/page/page-state.js";
import { chooseRows } from "../../../../src/batch/report/page/table/choose-rows.js";
import { statusClass } from "../../../../src/batch/report/page/wording.js";
import { attemptRow } from "../../../../src/batch/report/view/run-folder.js";
import type { AttemptRow, RunHeader } from "../../../../src/batch/report/view/view-model.js";
import { attemptResult } from "../../../support/view/run-fixture.js";

const header: RunHeader = {
  name: "run",
  plannedAttempts: null,
  settings: [],
  tags: { parsing: ["easy"], sorting: ["hard", "easy"] },
};

function row(task: string, changes: Partial<AttemptRow> = {}): AttemptRow {
  return { ...attemptRow(attemptResult({ task })), ...changes };
}

describe("the colour of a status", () => {
  it("is decided by the reward where there is one", () => {
    expect(statusClass({ status: "scored", reward: 0 })).toBe("bad");
    expect(statusClass({ status: "scored", reward: 0.5 })).toBe("bad");
    expect(statusClass({ status: "scored", reward: 1 })).toBe("good");
    expect(statusClass({ status: "infrastructure", reward: null })).toBe("status-infrastructure");
  });
});

describe("the rows of the table", () => {
  const rows = [
    row("parsing", { reward: 0.5, cause: "wrong", costUsd: 2 }),
    row("sorting", { reward: 1, costUsd: null }),
    row("network", { reward: null, status: "infrastructure", cause: "engine-gone", costUsd: 10 }),
    row("parsing", { attempt: 2, reward: 0, cause: "timed-out", costUsd: 1 }),
  ];
  const chosen = (filter: object, sort: object = firstState.sort) =>
    chooseRows(
      { rows, header },
      { filter: { ...noFilter, ...filter }, sort: sort as typeof firstState.sort },
    ).map(({ at }) => at);

  it.each([
    [{}, [0, 1, 2, 3]],
    [{ text: "  PARS " }, [0, 3]],
    [{ text: "engine" }, [2]],
    [{ task: "parsing" }, [0, 3]],
    [{ status: "scored", text: "pars" }, [0, 3]],
    [{ status: "infrastructure" }, [2]],
    [{ cause: "timed-out" }, [3]],
    [{ tag: "easy" }, [0, 1, 3]],
    [{ tag: "hard" }, [1]],
    [{ tag: "constructor" }, []],
    [{ reward: "full" }, [1]],
    [{ reward: "partial" }, [0]],
    [{ reward: "zero" }, [3]],
    [{ reward: "none" }, [2]],
  ])("with the filter %j", (filter, expected) => {
    expect(chosen(filter)).toEqual(expected);
  });

  it.each([
    ["cost", false, [3, 0, 2, 1]],
    ["cost", true, [2, 0, 3, 1]],
    ["reward", true, [1, 0, 3, 2]],
    ["task", false, [2, 0, 3, 1]],
    ["task", true, [1, 0, 3, 2]],
  ])("sorted by %s, descending: %s; what has no value is last", (by, isDescending, expected) => {
    expect(chosen({}, { by, isDescending })).toEqual(expected);
  });
});

describe("the address of the page", () => {
  it("gives back every state", () => {
    const state = fc.record({
      view: fc.constantFrom("attempts", "charts", "compare", "attempt"),
      run: fc.constantFrom(0, 1),
      filter: fc.record({
        text: fc.string(),
        task: fc.string(),
        status: fc.string(),
        cause: fc.string(),
        tag: fc.string(),
        reward: fc.constantFrom("", "full", "partial", "zero", "none"),
      }),
      sort: fc.record({ by: fc.constantFrom("task", "cost", "started"), isDescending: fc.boolean() }),
    });
    fc.assert(
      fc.property(state, (some) => {
        const whole = { ...firstState, ...some } as typeof firstState;
        expect(stateOf(fragmentOf(whole))).toEqual(whole);
      }),
    );
  });

  it("keeps the attempt and the tab", () => {
    const state = {
      ...firstState,
      view: "attempt" as const,
      attempt: { task: "org/a&b=c #1 <script>", number: 3 },
      tab: "diff" as const,
    };
    expect(stateOf(fragmentOf(state))).toEqual(state);
  });

  it.each(["", "#", "#view=elsewhere&run=7&sort=-nothing&reward=much&tab=x", "#%E0%A4%A"])(
    "%j is read without an error",
    (fragment) => {
      expect(stateOf(fragment)).toMatchObject({ view: "attempts", run: 0, tab: "overview" });
    },
  );
});

describe("the bins of a chart", () => {
  it("hold every value once", () => {
    const values = fc.array(fc.double({ min: 0, max: 1e9, noNaN: true }), { minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(values, (some) => {
        const all = bins(some);
        expect(all.reduce((sum, { count }) => sum + count, 0)).toBe(some.length);
        expect(all.length).toBeLessThanOrEqual(24);
        for (const [at, bin] of all.entries()) expect(bin.from).toBe(at === 0 ? 0 : all[at - 1]?.to);
      }),
    );
  });

  it("hold the smallest number there is", () => {
    const all = bins([Number.MIN_VALUE, 0]);
    expect(all.map(({ count }) => count)).toEqual([2]);
  });

  it("are not ruled by one outlier", () => {
    const usual = Array.from({ length: 999 }, (_, at) => at % 100);
    const all = bins([...usual, 1_000_000]);
    expect(all.filter(({ count }) => count > 0).length).toBeGreaterThan(10);
    expect(all.at(-1)?.to).toBe(1_000_000);
  });

  it("of rewards have places of their own for nothing, zero and one", () => {
    const counts = rewardBins([null, 0, 0, 1, 0.05, 0.95, 1.5, -2]);
    expect(Object.fromEntries(counts.map(({ label, count }) => [label, count]))).toMatchObject({
      "below 0": 1,
      "0": 2,
      "0–0.1": 1,
      "0.9–1": 1,
      "1": 1,
      "above 1": 1,
      none: 1,
    });
    expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(8);
  });

  it("the median is the middle, or between the two in the middle", () => {
    expect([median([]), median([5]), median([1, 9, 2]), median([4, 1, 2, 3])]).toEqual([null, 5, 2, 2.5]);
  });
});

describe("the comparison of two runs", () => {
  it("has flipped tasks first, then by how much they differ", () => {
    const a = [
      row("same"),
      row("lost"),
      row("lost", { attempt: 2 }),
      row("gained", { reward: 0 }),
      row("worse", { reward: 0.5 }),
      row("better", { reward: 0.1 }),
      row("broken", { reward: null }),
      row("only-a"),
    ];
    const b = [
      row("same"),
      row("lost"),
      row("lost", { attempt: 2, reward: 0 }),
      row("gained", { reward: 1 }),
      row("worse", { reward: 0.4 }),
      row("better", { reward: 0.9 }),
      row("broken"),
    ];
    expect(compareTasks(a, b).map(({ task, change, difference }) => [task, change, difference])).toEqual([
      ["lost", "lost", -0.5],
      ["gained", "gained", 1],
      ["worse", "worse", expect.closeTo(-0.1)],
      ["better", "better", expect.closeTo(0.8)],
      ["same", "same", 0],
      ["broken", "incomparable", null],
      ["only-a", "incomparable", null],
    ]);
  });
});

describe("the cause of a row", () => {
  const [step] = attemptResult({ task: "t" }).steps;
  const failure = { class: "disk-full", message: "", evidence: [] } as const;
  it.each([
    ["nothing for the full reward", {}, null],
    ["the failure", { status: "infrastructure", reward: null, failure }, "disk-full"],
    ["that it was cancelled", { status: "cancelled", reward: null }, "cancelled"],
    ["a wrong answer", { reward: 0 }, "wrong"],
    ["how the agent ended", { reward: 0, steps: [{ ...step!, agent: "timed-out" }] }, "timed-out"],
    ["a program that failed", { reward: 0, steps: [{ ...step!, agent: "failed" }] }, "agent-failed"],
    [
      "a reward that the verifier did not write, before all else",
      {
        status: "unscored",
        reward: null,
        steps: [
          { ...step!, agent: "timed-out", verification: { ...step!.verification!, verifier: "tampered" } },
        ],
      },
      "tampered",
    ],
    [
      "a verifier out of time",
      {
        status: "unscored",
        reward: null,
        steps: [{ ...step!, verification: { ...step!.verification!, verifier: "timed-out" } }],
      },
      "verifier-timed-out",
    ],
  ] as const)("is %s", (_title, changes, cause) => {
    expect(attemptRow(attemptResult({ task: "t", ...(changes as object) })).cause).toBe(cause);
  });
});
