import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { summarise } from "../../../../src/batch/report/summary.js";
import { junitDocument } from "../../../../src/batch/report/write-reports.js";
import { outcomeOf } from "../../../../src/batch/runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../../../src/batch/runs/results/attempt-result.js";
import { engineGone, infrastructure, playedBatch, playedResult } from "../../../support/played-attempts.js";

async function documentOf(results: readonly AttemptResult[], tasks = 1): Promise<string> {
  async function* each() {
    yield* results;
  }
  const pieces: string[] = [];
  const summary = summarise(playedBatch(tasks), results.map(outcomeOf));
  for await (const piece of junitDocument(summary, each())) pieces.push(piece);
  return pieces.join("");
}

const failing = (message: string): AttemptResult =>
  playedResult({
    reward: 0,
    steps: [
      {
        name: null,
        agent: "completed",
        agentMessage: null,
        rewards: null,
        verification: {
          mode: "separate",
          verifier: "no-reward",
          message,
          exitCode: 1,
          tests: [
            { name: "test_sum", status: "failed" },
            { name: "test_other", status: "passed" },
          ],
          findings: [],
          notes: [],
          confirmation: null,
        },
      },
    ],
  });

describe("junit.xml", () => {
  it("has a case for each attempt: passed, failed, without a score, not run", async () => {
    const results = [
      playedResult(),
      { ...failing("no reward was written"), task: "task-01" },
      playedResult({ task: "task-02", ...infrastructure }),
    ];
    expect((await documentOf(results, 4)).split("\n")).toEqual([
      '<?xml version="1.0" encoding="UTF-8"?>',
      '<testsuites name="brig batch" tests="4" failures="1" errors="1" skipped="1" time="1.000">',
      '  <testsuite name="nop" tests="4" failures="1" errors="1" skipped="1" time="1.000" timestamp="2026-11-23T08:00:00">',
      '    <testcase name="attempt 1" classname="task-00" time="1.000"/>',
      '    <testcase name="attempt 1" classname="task-01" time="1.000">',
      '      <failure type="reward" message="reward 0">reward 0&#10;agent completed&#10;verifier: no reward was written&#10;failed: test_sum</failure>',
      "    </testcase>",
      '    <testcase name="attempt 1" classname="task-02" time="1.000">',
      '      <error type="engine-gone" message="the engine went away">the engine went away&#10;connection refused</error>',
      "    </testcase>",
      '    <testcase name="not run" classname="task-03" time="0"><skipped/></testcase>',
      "  </testsuite>",
      "</testsuites>",
      "",
    ]);
  });

  it("says of a pass in the agent's container what it rests on, and nothing of another", async () => {
    const shared = (outcome: "clean" | "outside", paths: string[]) => {
      const [step] = failing("").steps;
      const confirmation = { outcome, paths, isSmallest: true, gradings: 3, message: null };
      const verification = {
        ...step!.verification!,
        mode: "shared" as const,
        verifier: "scored" as const,
        confirmation,
      };
      return playedResult({ reward: 1, steps: [{ ...step!, verification }] });
    };
    const clean = await documentOf([shared("clean", [])]);
    expect(clean).toContain('<properties><property name="pass" value="shared"/></properties>');
    expect(clean).not.toContain("system-out");
    const outside = await documentOf([shared("outside", ["/root/<x>"])]);
    expect(outside).toContain('<property name="pass" value="shared-outside"/>');
    expect(outside).toContain(
      "<system-out>shared, resting on changes outside of the work:&#10;/root/&lt;x&gt;</system-out>",
    );
  });

  it("lets no text out of its element, whatever is in it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 200 }), async (text) => {
        const failure = { ...engineGone, message: text, evidence: [text] };
        const document = await documentOf([
          failing(text),
          playedResult({ task: "task-01", ...infrastructure, failure }),
        ]);
        // Only tags, text and what XML 1.0 allows.
        expect(document.replace(/<\?xml[^<>]*\?>|<\/?[a-z]+(?: [a-z]+="[^<>"]*")*\/?>/g, "")).not.toMatch(
          /[<>]/,
        );
        expect(document).not.toMatch(/[^\t\n\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u);
        expect(document.match(/&(?!amp;|lt;|gt;|quot;|#10;|#9;)/g)).toBeNull();
      }),
    );
  });

  it("is read by a parser of XML as it was meant", async () => {
    const hostile = '</failure><testcase/>]]> & "quoted" \u0000\u001b[31m\u0085\ud800\ufffe \u202e 😀';
    const document = await documentOf([failing(hostile)]);
    const program =
      "import sys, xml.etree.ElementTree as t; r = t.fromstring(sys.stdin.buffer.read()); print(len(list(r.iter()))); print(r.find('.//failure').text.split('verifier: ')[1].split('\\n')[0].encode('unicode_escape').decode())";
    const [elements, text] = execFileSync("python3", ["-c", program], { input: document })
      .toString()
      .trimEnd()
      .split("\n");
    // The suites, the suite, the case and its failure.
    expect(elements).toBe("4");
    expect(text).toContain('</failure><testcase/>]]> & "quoted" \\u2400\\u241b[31m\\ufffd\\ufffd\\ufffd');
    expect(text).toContain("\\U0001f600");
  });

  it("cuts long messages", async () => {
    expect((await documentOf([failing("x".repeat(100_000))])).length).toBeLessThan(10_000);
  });
});
