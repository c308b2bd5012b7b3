import { describe, expect, it } from "vitest";
import type { BatchWait } from "../../../../src/batch/runs/admission/attempt-admission.js";
import type { BatchEvent } from "../../../../src/batch/runs/batch/batch-events.js";
import { batchRows, progressLine } from "../../../../src/cli/batch/progress/batch-rows.js";
import { BatchView } from "../../../../src/cli/batch/progress/batch-view.js";
import { showBatch } from "../../../../src/cli/batch/progress/show-batch.js";
import { testContext } from "../../../support/cli-context.js";
import { infrastructure, playedResult } from "../../../support/played-attempts.js";

const started: BatchEvent = {
  kind: "started",
  folder: "/runs/one",
  tasks: 10,
  attempts: 10,
  finished: 2,
  concurrency: 4,
};
const begins = (task: string): BatchEvent => ({ kind: "attempt-started", task, attempt: 1, try: 1 });
const ends = (given: Parameters<typeof playedResult>[0]): BatchEvent => ({
  kind: "attempt-ended",
  result: playedResult(given),
});

function viewAfter(...events: [BatchEvent, number][]): BatchView {
  const view = new BatchView();
  for (const [event, atMs] of events) view.take(event, atMs);
  return view;
}

describe("the rows of a run", () => {
  it("say what is done, how fast, for how much, with which rewards, and what takes longest", () => {
    const view = viewAfter(
      [started, 0],
      [begins("one"), 0],
      [begins("two"), 1000],
      [begins("three"), 2000],
      [begins("lost"), 2000],
      [ends({ task: "three", reward: 1 }), 20_000],
      [{ kind: "attempt-stage", task: "one", attempt: 1, stage: "agent" }, 21_000],
      [ends({ task: "lost", ...infrastructure }), 30_000],
    );
    expect(batchRows(view, 60_000)).toEqual([
      "4 of 10 done · 2 running · 2.0 a minute · $0.50",
      "reward 1.000 · 1 of 1 passed · no score: 1 engine-gone",
      "  one #1 · agent · 1 m 00 s",
      "  two #1 · 59.0 s",
    ]);
  });

  it("say how long the rest takes by the median of the attempts, once three have ended", () => {
    const names = ["a", "b", "c", "d"];
    const view = viewAfter([started, 0], ...names.map((name): [BatchEvent, number] => [begins(name), 0]));
    const left = (now: number) => /· ([a-z].* left)/.exec(progressLine(view, now))?.[1];
    view.take(ends({ task: "a" }), 5000);
    view.take(ends({ task: "b" }), 100_000);
    expect(left(100_000)).toBeUndefined();
    view.take(ends({ task: "c" }), 100_000);
    // 4 wait, 1 runs and is at its end by the median of 100 s; 4 ran at once.
    expect(left(100_000)).toBe("about 2 min left");
    view.take({ kind: "waiting", reason: { kind: "model", failed: 5, forMs: 1, message: "" } }, 100_000);
    expect(left(100_000)).toBeUndefined();
    view.take({ kind: "waiting", reason: null }, 100_000);
    view.take(begins("e"), 100_000);
    expect(left(150_000)).toBe("about 1 min left");
    view.take({ kind: "draining", reason: { kind: "interrupted" }, running: 1 }, 150_000);
    expect(left(150_000)).toBeUndefined();
  });

  it("say what the next attempt waits for, until it goes on", () => {
    const room = { kind: "room", resource: "memory", needed: 2 * 1024 ** 3, left: 1024 ** 3 } as const;
    const view = viewAfter([started, 0], [{ kind: "waiting", reason: room }, 0]);
    const rows = () => batchRows(view, 0).slice(1);
    expect(rows()).toEqual([
      "waiting for memory: the next attempt needs 2.0 GiB, and there are 1.0 GiB left",
    ]);
    const engine = { kind: "engine", failed: 5, outcomes: 8, forMs: 30_000, message: "no answer" } as const;
    view.take({ kind: "waiting", reason: engine }, 0);
    expect(rows()).toEqual([
      "the container engine failed 5 of the last 8 attempts; it is asked again in 30.0 s: no answer",
    ]);
    const model: BatchWait = { kind: "model", failed: 5, forMs: 30_000, message: "no such key" };
    view.take({ kind: "waiting", reason: model }, 0);
    expect(rows()).toEqual([
      "the model's endpoint failed in 5 attempts in a row; one tries it again in 30.0 s: no such key",
    ]);
    view.take({ kind: "waiting", reason: { ...model, forMs: 0 } }, 0);
    expect(rows()).toEqual([
      "the model's endpoint failed in 5 attempts in a row; one attempt tries it now: no such key",
    ]);
    view.take({ kind: "waiting", reason: null }, 0);
    expect(rows()).toEqual([]);
  });

  it("say why no more attempts start", () => {
    const draining: BatchEvent = { kind: "draining", reason: { kind: "interrupted" }, running: 1 };
    const view = viewAfter([started, 0], [begins("one"), 0], [draining, 0]);
    expect(progressLine(view, 0)).toBe(
      "2 of 10 done · 1 running · interrupted: waiting for what runs; ctrl-C again cancels it",
    );
    view.take({ kind: "stopping", running: 1 }, 0);
    expect(progressLine(view, 0)).toContain("cancelling what runs");
    const limit: BatchEvent = { kind: "draining", reason: { kind: "limit", limit: "cost" }, running: 0 };
    expect(progressLine(viewAfter([started, 0], [limit, 0]), 0)).toContain(
      "limit of the run's cost is reached",
    );
  });

  it("do not count a cancelled attempt as done", () => {
    const view = viewAfter([started, 0], [begins("one"), 0], [ends({ task: "one", status: "cancelled" }), 1]);
    expect(view).toMatchObject({ done: 2 });
    expect(view.running.size).toBe(0);
  });
});

describe("progress that is no terminal's", () => {
  it("has a line for each attempt that ends or is tried again, without control sequences", () => {
    const context = testContext();
    using display = showBatch(context);
    const { failure } = infrastructure;
    display.show(started);
    display.show(begins("one"));
    display.show({ kind: "attempt-retried", task: "one", attempt: 1, try: 1, failure });
    display.show(
      ends({ task: "one", ...infrastructure, failure: { ...failure, message: "\u001b[31mred\nline" } }),
    );
    expect(context.written().stderr).toBe(
      "2 of 10 attempts had ended before\n" +
        "one #1: engine-gone: the engine went away; it will be tried again\n" +
        "one #1: engine-gone: red␊line, after 1.0 s\n",
    );
    expect(context.written().stdout).toBe("");
  });
});

describe("progress on a terminal", () => {
  it("redraws its rows below the lines that stay, and leaves only those", () => {
    const context = testContext({ isTerminal: true, variables: { TERM: "xterm" } });
    {
      using display = showBatch(context);
      display.show(started);
      display.show(ends({ task: "one" }));
    }
    const { stderr } = context.written();
    expect(stderr).toContain("one #1: reward 1 in 1.0 s\n");
    // The last thing is that the rows are cleared.
    expect(stderr.endsWith("\u001b[2A\r\u001b[J")).toBe(true);
  });

  it("shows rows whole where the terminal does not know its width", () => {
    const context = testContext({ isTerminal: true, variables: { TERM: "xterm" } });
    Object.assign(context.stderr, { columns: 0 });
    using display = showBatch(context);
    display.show(ends({ task: "one" }));
    expect(context.written().stderr).toContain("one #1: reward 1 in 1.0 s\n");
  });
});
