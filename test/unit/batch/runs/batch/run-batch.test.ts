import { appendFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { BatchEvent } from "../../../../../src/batch/runs/batch/batch-events.js";
import { retryPolicy } from "../../../../../src/batch/runs/batch/batch-settings.js";
import { type BatchOptions, runAttempts } from "../../../../../src/batch/runs/batch/run-batch.js";
import { batchOptions, temporaryFolder } from "../../../../support/batch-runs.js";
import {
  infrastructure,
  playedRunner,
  playedSettings,
  playedTask,
  playedTasks,
} from "../../../../support/played-attempts.js";

const kindsOf = (events: BatchEvent[]) => events.map(({ kind }) => kind);

async function linesOf(folder: string): Promise<{ task: string; attempt: number; status: string }[]> {
  const text = await readFile(join(folder, "results.jsonl"), "utf8");
  expect(text === "" || text.endsWith("\n")).toBe(true);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

const placesOf = async (folder: string) =>
  (await linesOf(folder)).map(({ task, attempt }) => `${task} ${attempt}`).toSorted();

async function run(folder: string, given: Partial<BatchOptions> = {}) {
  const runner = playedRunner();
  const options = batchOptions(folder, { runner, ...given });
  const outcome = await runAttempts(options);
  return { ...outcome, events: options.events, started: runner.orders.map(({ task }) => task.name) };
}

describe("a run", () => {
  it("leaves a line and a folder for each attempt, and says what it ran", async () => {
    const folder = join(await temporaryFolder(), "not/yet/there");
    const settings = { ...playedSettings, attempts: 2 };
    const { outcomes, stop } = await run(folder, { tasks: [playedTask("org/name")], settings });
    expect(stop).toBeNull();
    expect(outcomes.map(({ reward }) => reward)).toEqual([1, 1]);
    expect(await placesOf(folder)).toEqual(["org/name 1", "org/name 2"]);
    expect(await readdir(join(folder, "attempts/org__name"))).toEqual(["1", "2"]);
    expect(JSON.parse(await readFile(join(folder, "batch.json"), "utf8"))).toMatchObject({
      schemaVersion: 1,
      createdAt: "2026-11-23T08:00:00.000Z",
      settings,
      tasks: [{ name: "org/name", checksum: "checksum of org/name" }],
    });
    expect(await readdir(folder)).toEqual(["attempts", "batch.json", "results.jsonl"]);
  });

  it("reports what happens in order", async () => {
    const { events } = await run(await temporaryFolder(), { tasks: playedTasks(1) });
    expect(kindsOf(events)).toEqual([
      "started",
      "attempt-started",
      "attempt-stage",
      "attempt-ended",
      "ended",
    ]);
    expect(events[0]).toMatchObject({ tasks: 1, attempts: 1, finished: 0, concurrency: 2 });
  });

  it("starts an attempt when it is admitted, says why it waits, and gives its room back", async () => {
    const open: string[] = [];
    let most = 0;
    const { events } = await run(await temporaryFolder(), {
      concurrency: 3,
      admission: (onWait) => ({
        enter: async ({ name }) => {
          while (open.length > 0) {
            onWait({ kind: "room", resource: "memory", needed: 2, left: 1 });
            await new Promise((resolve) => setImmediate(resolve));
          }
          open.push(name);
          most = Math.max(most, open.length);
          onWait(null);
          return { ended: (result) => open.splice(open.indexOf(result?.task ?? ""), 1) };
        },
      }),
    });
    expect(most).toBe(1);
    expect(open).toEqual([]);
    expect(kindsOf(events)).toContain("waiting");
    expect(kindsOf(events).filter((kind) => kind === "attempt-ended")).toHaveLength(3);
  });

  it("ends when it is interrupted while attempts wait for room, and runs none of them", async () => {
    const drain = new AbortController();
    const { stop, started, events } = await run(await temporaryFolder(), {
      drain: drain.signal,
      admission: () => ({
        enter: (_task, signal) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
            setImmediate(() => drain.abort());
          }),
      }),
    });
    expect(stop).toEqual({ kind: "interrupted" });
    expect(started).toEqual([]);
    expect(kindsOf(events)).not.toContain("attempt-started");
  });

  it("runs the first attempt at each task before the second at any", async () => {
    const runner = playedRunner();
    const settings = { ...playedSettings, attempts: 2 };
    await run(await temporaryFolder(), { runner, settings, concurrency: 1, tasks: playedTasks(2) });
    expect(runner.orders.map(({ task, attempt }) => `${task.name} ${attempt}`)).toEqual([
      "task-00 1",
      "task-01 1",
      "task-00 2",
      "task-01 2",
    ]);
  });

  it("refuses tasks whose results would have one folder", async () => {
    const tasks = [playedTask("a/b"), playedTask("a__b")];
    await expect(run(await temporaryFolder(), { tasks })).rejects.toMatchObject({
      code: "usage.invalid",
      message: "the results of the tasks a/b and a__b would have the same folder",
    });
    await expect(run(await temporaryFolder(), { tasks: [playedTask("..")] })).rejects.toThrow('named ".."');
  });

  it("refuses a folder that has other files in it", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "notes.txt"), "mine");
    await expect(run(folder)).rejects.toMatchObject({ code: "usage.invalid" });
    expect(await readdir(folder)).toEqual(["notes.txt"]);
  });

  it("refuses a folder in which another run is at work", async () => {
    const folder = await temporaryFolder();
    const runner = playedRunner({
      play: async () => {
        await expect(run(folder)).rejects.toMatchObject({ code: "session.busy" });
        return {};
      },
    });
    const { outcomes } = await run(folder, { runner, tasks: playedTasks(1) });
    expect(outcomes).toHaveLength(1);
  });

  it("refuses a batch.json that is none", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "batch.json"), "{}");
    await expect(run(folder)).rejects.toMatchObject({ code: "usage.invalid" });
  });
});

describe("the same run again", () => {
  it("runs nothing that has ended", async () => {
    const folder = await temporaryFolder();
    const first = await run(folder);
    const { events, outcomes, started } = await run(folder);
    expect(started).toEqual([]);
    expect(events[0]).toMatchObject({ kind: "started", finished: 3 });
    expect(outcomes.map(({ task }) => task).toSorted()).toEqual(
      first.outcomes.map(({ task }) => task).toSorted(),
    );
    expect(await placesOf(folder)).toEqual(["task-00 1", "task-01 1", "task-02 1"]);
  });

  it("runs a torn attempt again, in an empty folder", async () => {
    const folder = await temporaryFolder();
    await run(folder, { tasks: playedTasks(2) });
    await rm(join(folder, "attempts/task-01/1/result.json"));
    await writeFile(join(folder, "attempts/task-01/1/left"), "torn");
    await writeFile(
      join(folder, "results.jsonl"),
      `${(await readFile(join(folder, "results.jsonl"), "utf8"))
        .split("\n")
        .filter((line) => line.includes("task-00"))
        .join("\n")}\n`,
    );
    const { started } = await run(folder, { tasks: playedTasks(2) });
    expect(started).toEqual(["task-01"]);
    expect(await readdir(join(folder, "attempts/task-01/1"))).toEqual(["agent", "result.json"]);
    expect(await placesOf(folder)).toEqual(["task-00 1", "task-01 1"]);
  });

  it.each([
    ["is missing", (text: string) => `${text.split("\n").slice(0, 2).join("\n")}\n`],
    ["is torn", (text: string) => text.slice(0, -20)],
    ["lacks its newline", (text: string) => text.slice(0, -1)],
    ["is there twice", (text: string) => text + text],
    ["is another text", (text: string) => text.replace(/^.*\n/, "no JSON\n")],
  ])("repairs results.jsonl from the attempts if a line %s", async (_, damage) => {
    const folder = await temporaryFolder();
    await run(folder);
    const file = join(folder, "results.jsonl");
    const whole = await readFile(file, "utf8");
    await writeFile(file, damage(whole));
    const { started, outcomes } = await run(folder);
    expect(started).toEqual([]);
    expect(outcomes).toHaveLength(3);
    const sorted = (text: string) => text.split("\n").toSorted();
    expect(sorted(await readFile(file, "utf8"))).toEqual(sorted(whole));
  });

  it("does not believe the result of another attempt", async () => {
    const folder = await temporaryFolder();
    await run(folder, { tasks: playedTasks(2) });
    await writeFile(join(folder, "results.jsonl"), "");
    const other = await readFile(join(folder, "attempts/task-01/1/result.json"), "utf8");
    await writeFile(join(folder, "attempts/task-00/1/result.json"), other);
    const { started } = await run(folder, { tasks: playedTasks(2) });
    expect(started).toEqual(["task-00"]);
  });

  it("names each task and setting that has changed", async () => {
    const folder = await temporaryFolder();
    await run(folder);
    const tasks = [
      playedTask("task-00", { checksum: "another" }),
      playedTask("task-01", {
        checksum: "one more",
        parts: { ...playedTask("x").parts, tests: "ab".repeat(32) },
      }),
      playedTask("task-09"),
    ];
    const settings = {
      ...playedSettings,
      agent: { name: "model", model: "small", options: {} },
      limits: { ...playedSettings.limits, maxTurns: 7 },
    };
    const refused = run(folder, { tasks, settings });
    await expect(refused).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(refused).rejects.toThrow(
      [
        "is of a run with other tasks or settings:",
        "  agent.name: nop → model",
        "  agent.model: nothing → small",
        "  limits.maxTurns: nothing → 7",
        "  tasks.task-00: checksum of task-00 → another",
        "  tasks.task-01.tests: t → abababababab…",
        "  tasks.task-02: checksum of task-02 → nothing",
        "  tasks.task-09: nothing → checksum of task-09",
      ].join("\n"),
    );
    expect(await placesOf(folder)).toEqual(["task-00 1", "task-01 1", "task-02 1"]);
  });

  it("does not mind other concurrency, limits of the run and retries", async () => {
    const folder = await temporaryFolder();
    await run(folder);
    const { stop } = await run(folder, {
      concurrency: 7,
      retries: retryPolicy({ all: 0 }),
      limits: { maxTokens: 1 },
    });
    expect(stop).toBeNull();
  });

  it("goes on with the run of an older version as that one extended limits, and refuses to mix them", async () => {
    const folder = await temporaryFolder();
    await run(folder);
    const file = join(folder, "batch.json");
    const batch = JSON.parse(await readFile(file, "utf8"));
    batch.settings.limits.timeoutExtension = null;
    await writeFile(file, JSON.stringify(batch));
    await expect(run(folder)).rejects.toThrow("limits.timeoutExtension: 1 → 0");
    const settings = { ...playedSettings, limits: { ...playedSettings.limits, timeoutExtension: 1 } };
    expect((await run(folder, { settings })).started).toEqual([]);
  });

  const allowed = { allowsChanges: true, retriesInfrastructure: false, scoresUnscored: false };

  it("sets aside what a changed task gave, if that is allowed", async () => {
    const folder = await temporaryFolder();
    await run(folder);
    const tasks = [playedTask("task-00", { checksum: "another" }), playedTask("task-01")];
    const { started, outcomes } = await run(folder, { tasks, resume: allowed });
    expect(started).toEqual(["task-00"]);
    expect(outcomes.map(({ taskChecksum }) => taskChecksum).toSorted()).toEqual([
      "another",
      "checksum of task-01",
    ]);
    expect(await placesOf(folder)).toEqual(["task-00 1", "task-01 1"]);
    const aside = join(folder, "superseded/1");
    expect(await placesOf(aside)).toEqual(["task-00 1", "task-02 1"]);
    expect((await readdir(join(aside, "attempts"))).toSorted()).toEqual(["task-00", "task-02"]);
    expect(JSON.parse(await readFile(join(aside, "batch.json"), "utf8")).tasks).toHaveLength(3);
    expect((await run(folder, { tasks })).started).toEqual([]);
  });

  it("sets everything aside if a setting has changed, and nothing if there are more attempts", async () => {
    const folder = await temporaryFolder();
    const tasks = playedTasks(1);
    await run(folder, { tasks });
    const more = { ...playedSettings, attempts: 3 };
    expect((await run(folder, { tasks, settings: more, resume: allowed })).started).toHaveLength(2);
    expect(await readdir(folder)).not.toContain("superseded");
    const slower = { ...more, limits: { ...more.limits, timeoutMultiplier: 2 } };
    expect((await run(folder, { tasks, settings: slower, resume: allowed })).started).toHaveLength(3);
    expect(await placesOf(join(folder, "superseded/1"))).toEqual(["task-00 1", "task-00 2", "task-00 3"]);
    const fewer = { ...slower, attempts: 1 };
    expect((await run(folder, { tasks, settings: fewer, resume: allowed })).started).toEqual([]);
    expect(await placesOf(folder)).toEqual(["task-00 1"]);
    expect(await placesOf(join(folder, "superseded/2"))).toEqual(["task-00 2", "task-00 3"]);
  });
});

describe("an attempt that the infrastructure ends", () => {
  const failsTwice = () => playedRunner({ play: ({ tries }) => (tries.length < 2 ? infrastructure : {}) });

  it("is tried again, and its result has the tries before", async () => {
    const folder = await temporaryFolder();
    const { outcomes, events } = await run(folder, { runner: failsTwice(), tasks: playedTasks(1) });
    expect(outcomes).toMatchObject([{ status: "scored", tries: [{}, {}] }]);
    expect(kindsOf(events).filter((kind) => kind === "attempt-retried")).toHaveLength(2);
    expect((await readdir(join(folder, "attempts/task-00"))).toSorted()).toEqual(["1", "1.try-1", "1.try-2"]);
    expect(await linesOf(folder)).toHaveLength(1);
  });

  it("is given up after as many tries as its class has", async () => {
    const folder = await temporaryFolder();
    const runner = playedRunner({ play: () => infrastructure });
    const retries = retryPolicy({ byClass: { "engine-gone": 1 } });
    const { outcomes } = await run(folder, { runner, retries, tasks: playedTasks(1) });
    expect(runner.orders).toHaveLength(2);
    expect(outcomes).toMatchObject([{ status: "infrastructure", reward: null, tries: [{}] }]);
  });

  it("stays so the next time, unless another try is asked for", async () => {
    const folder = await temporaryFolder();
    const failing = playedRunner({ play: () => infrastructure });
    await run(folder, { runner: failing, retries: retryPolicy({ all: 0 }), tasks: playedTasks(1) });
    expect((await run(folder, { tasks: playedTasks(1) })).started).toEqual([]);
    const resume = { allowsChanges: false, retriesInfrastructure: true, scoresUnscored: false };
    const { outcomes } = await run(folder, { tasks: playedTasks(1), resume });
    expect(outcomes).toMatchObject([{ status: "scored", tries: [{ failure: { class: "engine-gone" } }] }]);
    expect(await linesOf(folder)).toMatchObject([{ status: "scored" }]);
  });

  it("keeps its earlier tries when a later one is torn", async () => {
    const folder = await temporaryFolder();
    await run(folder, { runner: failsTwice(), tasks: playedTasks(1) });
    await writeFile(join(folder, "results.jsonl"), "");
    await rm(join(folder, "attempts/task-00/1/result.json"));
    const { outcomes } = await run(folder, { tasks: playedTasks(1) });
    expect(outcomes).toMatchObject([{ status: "scored", tries: [{}, {}] }]);
  });

  it("goes on with its next try if the run was killed between two", async () => {
    const folder = await temporaryFolder();
    const failing = playedRunner({ play: () => infrastructure });
    await run(folder, { runner: failing, retries: retryPolicy({ all: 0 }), tasks: playedTasks(1) });
    await writeFile(join(folder, "results.jsonl"), "");
    const { outcomes } = await run(folder, { tasks: playedTasks(1) });
    expect(outcomes).toMatchObject([{ status: "scored", tries: [{}] }]);
  });
});

describe("an attempt whose grade the infrastructure has lost", () => {
  const lost = { ...infrastructure, status: "unscored" as const };

  it("is graded again in the same run, and its agent neither works nor is paid for twice", async () => {
    const folder = await temporaryFolder();
    const runner = playedRunner({ play: () => lost });
    // Each attempt costs 0.25, so that a second run of the agent would reach it.
    const limits = { maxCostUsd: 0.5 };
    const { outcomes, stop } = await run(folder, { runner, limits, tasks: playedTasks(1) });
    expect(stop).toBeNull();
    expect(outcomes).toMatchObject([
      { status: "scored", reward: 0.5, tries: [{ failure: infrastructure.failure }] },
    ]);
    expect(runner.orders.map(({ folder: own }) => own)).toEqual(
      Array(2).fill(join(folder, "attempts/task-00/1")),
    );
    expect(await readFile(join(folder, "attempts/task-00/1/agent/output.txt"), "utf8")).toBe("partial");
  });

  it("is graded again when the run was killed before it could be", async () => {
    const folder = await temporaryFolder();
    const runner = playedRunner({ play: () => lost });
    await run(folder, { runner, retries: retryPolicy({ all: 0 }), tasks: playedTasks(1) });
    await writeFile(join(folder, "results.jsonl"), "");
    expect(await run(folder, { tasks: playedTasks(1) })).toMatchObject({
      outcomes: [{ status: "scored", reward: 0.5, tries: [{}] }],
    });
  });

  it("is run again where nothing can grade it, which keeps what the try before has left", async () => {
    const folder = await temporaryFolder();
    const { run: work } = playedRunner({ play: ({ tries }) => (tries.length === 0 ? lost : {}) });
    const { outcomes } = await run(folder, { runner: { run: work }, tasks: playedTasks(1) });
    expect(outcomes).toMatchObject([{ status: "scored", reward: 1, tries: [{}] }]);
    expect((await readdir(join(folder, "attempts/task-00"))).toSorted()).toEqual(["1", "1.try-1"]);
  });
});

describe("an attempt that cannot be graded", () => {
  const failure = { class: "ungradable", message: "no tests", evidence: [] } as const;
  const ungradable = { status: "unscored", reward: null, rewards: {}, failure } as const;

  it("has its cause, and the others go on", async () => {
    const folder = await temporaryFolder();
    const runner = playedRunner({ play: ({ task }) => (task.name === "task-00" ? ungradable : {}) });
    const { outcomes, stop } = await run(folder, { runner, concurrency: 1 });
    expect(stop).toBeNull();
    expect(outcomes.map(({ status }) => status)).toEqual(["unscored", "scored", "scored"]);
    expect(await linesOf(folder)).toMatchObject([{ failure }, {}, {}]);
    expect(runner.orders).toHaveLength(3);
    expect((await run(folder)).started).toEqual([]);
    const resume = { allowsChanges: false, retriesInfrastructure: true, scoresUnscored: false };
    expect(await run(folder, { resume })).toMatchObject({ started: ["task-00"] });
  });
});

describe("an attempt without a score", () => {
  const resume = { allowsChanges: false, retriesInfrastructure: false, scoresUnscored: true };

  it("is graded again from what it has left, if that is asked for", async () => {
    const folder = await temporaryFolder();
    const unscored = playedRunner({ play: () => ({ status: "unscored", reward: null }) });
    await run(folder, { runner: unscored, tasks: playedTasks(1) });
    expect((await run(folder, { tasks: playedTasks(1) })).started).toEqual([]);
    await appendFile(join(folder, "attempts/task-00/1/artifact"), "kept");
    const { outcomes } = await run(folder, { tasks: playedTasks(1), resume });
    expect(outcomes).toMatchObject([{ status: "scored", reward: 0.5 }]);
    expect(await linesOf(folder)).toMatchObject([{ status: "scored" }]);
    expect(await readFile(join(folder, "attempts/task-00/1/artifact"), "utf8")).toBe("kept");
  });
});

describe("a run that is interrupted", () => {
  it("starts no more attempts when it drains, and keeps those that run", async () => {
    const drain = new AbortController();
    const folder = await temporaryFolder();
    const runner = playedRunner({
      play: () => {
        drain.abort();
        return {};
      },
    });
    const { stop, outcomes, events } = await run(folder, { runner, drain: drain.signal, concurrency: 1 });
    expect(stop).toEqual({ kind: "interrupted" });
    expect(outcomes).toHaveLength(1);
    expect(kindsOf(events)).toContain("draining");
    expect((await run(folder)).started.toSorted()).toEqual(["task-01", "task-02"]);
  });

  it("does not count a cancelled attempt, and runs it again", async () => {
    const stopping = new AbortController();
    const folder = await temporaryFolder();
    const runner = playedRunner({
      play: ({ signal }) => {
        stopping.abort();
        return signal.aborted ? { status: "cancelled", reward: null } : {};
      },
    });
    const { outcomes, events } = await run(folder, { runner, signal: stopping.signal, concurrency: 1 });
    expect(outcomes).toEqual([]);
    expect(kindsOf(events)).toContain("stopping");
    expect((await run(folder)).started.toSorted()).toEqual(["task-00", "task-01", "task-02"]);
    expect(await placesOf(folder)).toEqual(["task-00 1", "task-01 1", "task-02 1"]);
  });

  it.each([
    ["cost", { maxCostUsd: 0.5 }],
    ["tokens", { maxTokens: 240 }],
  ])("ends at the limit of its %s, which counts earlier runs too", async (limit, limits) => {
    const folder = await temporaryFolder();
    const { stop, outcomes } = await run(folder, { limits, concurrency: 1 });
    expect(stop).toEqual({ kind: "limit", limit });
    expect(outcomes).toHaveLength(2);
    expect((await run(folder, { limits })).started).toEqual([]);
  });

  it("ends at its time limit", async () => {
    const waits = playedRunner({
      play: ({ signal }) =>
        new Promise((resolve) => {
          const timer = setInterval(() => {
            if (time.ended) resolve({});
            if (time.ended || signal.aborted) clearInterval(timer);
          }, 1);
        }),
    });
    const time = { ended: false };
    const options = batchOptions(await temporaryFolder(), {
      runner: waits,
      limits: { maxTimeMs: 1 },
      onEvent: ({ kind }) => {
        if (kind === "draining") time.ended = true;
      },
    });
    await mkdir(options.folder, { recursive: true });
    expect((await runAttempts(options)).stop).toEqual({ kind: "limit", limit: "time" });
  });

  it("ends after the first failure if it fails fast", async () => {
    const runner = playedRunner({ play: ({ task }) => (task.name === "task-01" ? { reward: 0 } : {}) });
    const { stop } = await run(await temporaryFolder(), { runner, failsFast: true, concurrency: 1 });
    expect(stop).toEqual({ kind: "failed", task: "task-01", attempt: 1 });
    expect(runner.orders).toHaveLength(2);
  });

  it("lets the other attempts end when the runner throws, and fails with that error", async () => {
    const folder = await temporaryFolder();
    let fail: () => void = () => undefined;
    const failed = new Promise<void>((resolve) => {
      fail = resolve;
    });
    const ended: string[] = [];
    const runner = playedRunner({
      play: async ({ task }) => {
        if (task.name === "task-00") {
          setImmediate(fail);
          throw new Error("a bug");
        }
        await failed;
        ended.push(task.name);
        return {};
      },
    });
    await expect(run(folder, { runner })).rejects.toThrow("a bug");
    expect(ended).toEqual(["task-01"]);
    expect(await placesOf(folder)).toEqual(["task-01 1"]);
  });
});
