import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeReports } from "../../../../src/batch/report/write-reports.js";
import { reportToGithub } from "../../../../src/cli/batch/github.js";
import { temporaryFolder } from "../../../support/batch-runs.js";
import { testContext } from "../../../support/cli-context.js";
import { playedRun } from "../../../support/played-runs.js";

async function reported(variables: Record<string, string>, isAskedFor?: boolean) {
  const folder = await temporaryFolder();
  const summary = await writeReports(folder, await playedRun(folder, { first: 0 }));
  const file = join(folder, "step-summary");
  const context = testContext({ variables: { GITHUB_STEP_SUMMARY: file, ...variables } });
  await reportToGithub(summary, { folder, tasks: [], isAskedFor }, context);
  return { ...context.written(), text: await readFile(file, "utf8").catch(() => null) };
}

describe("what GitHub shows of a batch", () => {
  it("is written in its jobs, or if it is asked for", async () => {
    for (const report of [await reported({ GITHUB_ACTIONS: "true" }), await reported({}, true)]) {
      expect(report.stderr).toBe("::error title=first #1::reward 0\n");
      expect(report.text).toContain("| ❌ | first |");
      expect(report.stdout).toBe("");
    }
  });

  it("is not written elsewhere, or if it is not wanted", async () => {
    for (const report of [await reported({}), await reported({ GITHUB_ACTIONS: "true" }, false)])
      expect(report).toEqual({ stdout: "", stderr: "", text: null });
  });

  it("fails no run if it cannot be written", async () => {
    const { stderr } = await reported({ GITHUB_STEP_SUMMARY: "/proc/no/such", GITHUB_ACTIONS: "true" });
    expect(stderr).toContain("the job summary could not be written: ENOENT");
  });
});
