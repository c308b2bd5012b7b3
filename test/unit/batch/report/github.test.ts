import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { annotations, jobSummary } from "../../../../src/batch/report/github.js";
import { summarise } from "../../../../src/batch/report/summary.js";
import { outcomeOf } from "../../../../src/batch/runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../../../src/batch/runs/results/attempt-result.js";
import { infrastructure, playedBatch, playedResult } from "../../../support/played-attempts.js";

const failed = (given: Partial<AttemptResult> = {}) =>
  playedResult({ reward: 0, rewards: { reward: 0 }, ...given });

async function* each(results: readonly AttemptResult[]) {
  yield* results;
}

const tasks = [
  { name: "task-00", source: "/repo/tasks/a, b: c" },
  { name: "task-01", source: "/repo/tasks.jsonl:7" },
  { name: "task-02", source: "/elsewhere/task" },
];
const annotated = (...results: AttemptResult[]) => annotations(each(results), { tasks, workspace: "/repo" });

describe("annotations", () => {
  it("name the file of each task that did not pass, once", async () => {
    expect(
      await annotated(
        playedResult(),
        failed({ attempt: 2 }),
        failed({ attempt: 3 }),
        failed({ task: "task-01" }),
        playedResult({ task: "task-02", ...infrastructure }),
      ),
    ).toEqual([
      "::error file=tasks/a%2C b%3A c,title=task-00 #2::reward 0",
      "::error file=tasks.jsonl,line=7,title=task-01 #1::reward 0",
      "::warning title=task-02 #1::the engine went away%0Aconnection refused",
    ]);
  });

  it("are at most ten of each kind", async () => {
    const results = Array.from({ length: 30 }, (_, index) => failed({ task: `t-${index}` }));
    expect(await annotated(...results)).toHaveLength(10);
  });

  it("are one command in one line, whatever a container prints", async () => {
    const hostile = fc.array(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.constantFrom("\n::error::x", "\r\n", "##[error]", "%0A::x", "::", ","),
      ),
    );
    await fc.assert(
      fc.asyncProperty(hostile, async (pieces) => {
        const message = pieces.join("");
        const failure = { class: "image-failed" as const, message, evidence: [message] };
        const [line = ""] = await annotated(playedResult({ ...infrastructure, failure }));
        expect(line).toMatch(/^::warning file=[^,]+,title=task-00 #1::[^\r\n]*$/s);
        expect(line).not.toContain("##[");
      }),
      { numRuns: 50 },
    );
    const failure = { class: "image-failed" as const, message: "50%0A::error::x", evidence: [] };
    expect(await annotated(playedResult({ ...infrastructure, failure }))).toEqual([
      expect.stringMatching(/::50%250A::error::x$/),
    ]);
  });
});

describe("the job summary", () => {
  const summary = summarise(playedBatch(2), [
    outcomeOf(playedResult()),
    outcomeOf(failed({ task: "task-01" })),
  ]);

  it("has the numbers of the run, and the tasks that did not pass first", () => {
    const text = jobSummary(summary);
    expect(text).toContain("## brig batch: nop\n");
    expect(text).toMatch(/\| Reward \| 0&#46;500 &#40;.* \|/);
    expect(text).toMatch(/\| ❌ \| task-01 \|.*\n\| ✅ \| task-00 \|/);
  });

  it("shows names as they are", () => {
    const agent = { name: "<img src=x> | [a](http://b) www.c.d", model: "`x`\n# head" };
    const [head = ""] = jobSummary({ ...summary, agent }).split("\n");
    expect(head).not.toMatch(/[<>|[\]()`]|https?:|www\./);
    expect(head).toContain("&#60;img src&#61;x&#62;");
    expect(jobSummary({ ...summary, agent })).not.toMatch(/^# head/m);
  });
});
