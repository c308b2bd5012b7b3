import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { defaultRuntime } from "../../../scripts/engine-results/ask-engine.js";
// @ts-expect-error -- a plain script without types
import { countTests } from "../../../scripts/engine-results/count-tests.js";
// @ts-expect-error -- a plain script without types
import { documents, resultsDirectory, root } from "../../../scripts/engine-results/places.js";
// @ts-expect-error -- a plain script without types
import { readResults } from "../../../scripts/engine-results/results.js";
// @ts-expect-error -- a plain script without types
import { fullTable, replaceTable } from "../../../scripts/engine-results/tables.js";

const results = await readResults(resultsDirectory);

const docker = {
  date: "2026-11-24",
  engine: "Docker 26.1.5",
  runtime: "runc 1.1.5",
  kernel: "6.1.0",
  cgroupVersion: "2",
  rootless: false,
  architecture: "amd64",
  runBy: ".ci/docker-26",
  tests: "some",
  files: 1,
  passed: 7,
  failed: [],
  skipped: [],
};

function report(...files: [name: string, tests: Record<string, string>, status?: string][]) {
  return {
    testResults: files.map(([name, tests, status = "passed"]) => ({
      ...{ name: join(root, name), status },
      assertionResults: Object.entries(tests).map(([fullName, one]) => ({ fullName, status: one })),
    })),
  };
}

it.each([
  ["runc", { Name: "runc", Version: "1.1.5+ds1" }, "runc 1.1.5"],
  ["crun", { Name: "OCI Runtime (crun)", Version: "crun version 1.8.1\ncommit: 1" }, "crun 1.8.1"],
  [
    "/x/script.cjs",
    { Name: "OCI Runtime (/x/script.cjs)", Version: "runc version 1.1.15+ds1" },
    "runc 1.1.15",
  ],
  ["/usr/bin/runc", { Name: "containerd", Version: "1.6.20" }, "runc"],
])("the default runtime %s of an engine is what it says itself", (DefaultRuntime, component, expected) => {
  expect(defaultRuntime({ DefaultRuntime }, { Components: [component] })).toBe(expected);
});

describe("the tables of engines", () => {
  it.each<{ file: string; table: (runs: unknown) => string }>(documents)(
    "in $file say what the result files say",
    async ({ file, table }) => {
      const text = await readFile(join(root, file), "utf8");
      expect(replaceTable(text, table(results))).toBe(text);
      for (const { engine } of results) expect(text).toContain(engine);
    },
  );

  it("name every run once, older versions first, and say what was not run", () => {
    const older = { ...docker, engine: "Docker 9.0.1", rootless: true, failed: ["a.test.ts: breaks"] };
    const other = { ...docker, engine: "Podman 4.3.1", skipped: [{ reason: "it | cannot", tests: 2 }] };
    const all = fullTable([other, docker, older]);
    expect(all.split("\n").slice(0, 5)).toEqual([
      "| engine | kernel | tests | result | run by |",
      "|---|---|---|---|---|",
      "| Docker 9.0.1 rootless, runc 1.1.5, cgroup v2 | Linux 6.1.0, amd64 | some; 1 file | 7 passed, 1 failed, 0 skipped | `.ci/docker-26`, 2026-11-24 |",
      "| Docker 26.1.5, runc 1.1.5, cgroup v2 | Linux 6.1.0, amd64 | some; 1 file | 7 passed, 0 failed, 0 skipped | `.ci/docker-26`, 2026-11-24 |",
      "| Podman 4.3.1, runc 1.1.5, cgroup v2 | Linux 6.1.0, amd64 | some; 1 file | 7 passed, 0 failed, 2 skipped | `.ci/docker-26`, 2026-11-24 |",
    ]);
    expect(all).toContain("Failed on Docker 9.0.1 rootless, runc 1.1.5, cgroup v2:\n\n- a.test.ts: breaks");
    expect(all).toContain("- it | cannot (2 tests)");
  });

  it("are written between their markers only", () => {
    const begin = "<!-- written by scripts/engine-results.mjs: begin -->";
    const end = "<!-- written by scripts/engine-results.mjs: end -->";
    expect(replaceTable(`a\n${begin}\nold\n${end}\nb\n`, "new")).toBe(`a\n${begin}\nnew\n${end}\nb\n`);
    expect(() => replaceTable(`a\n${end}\n${begin}\n`, "new")).toThrow("between");
  });
});

describe("what is counted of a report", () => {
  it("takes the reasons from the names of skipped tests, or else names their file", () => {
    const tests = {
      passes: "passed",
      breaks: "failed",
      "ends [not on boxed: it has no limit]": "skipped",
      "stops [not on boxed: it has no limit]": "pending",
      "on gVisor [needs it as BRIG_TEST_RUNTIME] goes": "skipped",
      "is never run": "todo",
    };
    expect(countTests(report(["test/docker/a.test.ts", tests]))).toEqual({
      files: 1,
      passed: 1,
      failed: ["test/docker/a.test.ts: breaks"],
      skipped: [
        { reason: "it has no limit", tests: 2 },
        { reason: "needs it as BRIG_TEST_RUNTIME", tests: 1 },
        { reason: "test/docker/a.test.ts", tests: 1 },
      ],
    });
  });

  it("counts a file that breaks outside of its tests as failed", () => {
    const broken = report(["b.test.ts", { one: "passed" }, "failed"], ["c.test.ts", { two: "passed" }]);
    expect(countTests(broken)).toMatchObject({ passed: 2, failed: ["b.test.ts: (the file)"] });
  });

  it("counts a file that ran once more as it ended then", () => {
    const first = report(
      ["b.test.ts", { one: "failed" }, "failed"],
      ["c.test.ts", { two: "failed" }, "failed"],
    );
    const again = report(["b.test.ts", { one: "passed" }]);
    expect(countTests(first, again)).toMatchObject({ files: 2, passed: 1, failed: ["c.test.ts: two"] });
  });
});
