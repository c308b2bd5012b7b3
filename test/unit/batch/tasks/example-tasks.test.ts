import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readTasks } from "../../../../src/batch/tasks/read-tasks.js";

const tasks = fileURLToPath(new URL("../../../../examples/tasks", import.meta.url));
const content = (path: string) => readFileSync(join(tasks, path));

it.each([
  ["messy-csv/environment/orders.csv", "messy-csv/tests/orders.csv"],
  ["two-steps/environment/access.log", "two-steps/steps/parse/tests/access.log"],
  ["two-steps/environment/access.log", "two-steps/steps/report/tests/access.log"],
])("the agent's %s and the tests' %s are the same", (agents, tests) => {
  expect(content(agents).equals(content(tests))).toBe(true);
});

it("the tests of broken-makefile know the sources that the agent gets", () => {
  const listed = content("broken-makefile/tests/sources.sha256").toString().trimEnd().split("\n");
  const sources = listed.map((line) => line.split("  ")[1] ?? "");
  expect(sources).toEqual(["main.c", "stats.c", "stats.h"]);
  const sums = sources.map((name) => {
    const sum = createHash("sha256").update(content(`broken-makefile/environment/${name}`));
    return `${sum.digest("hex")}  ${name}`;
  });
  expect(sums).toEqual(listed);
});

it("all of them are read without a warning, one in mode shared, and all have solutions and no network", async () => {
  const read = await readTasks([tasks], { cwd: "/", variables: {} });
  expect(read.flatMap(({ warnings }) => warnings)).toEqual([]);
  expect(read.map(({ name }) => name)).toHaveLength(8);
  const steps = read.flatMap((task) => task.steps.map((step) => ({ task: task.name, ...step })));
  const shared = steps.filter(({ verifier }) => verifier.mode === "shared").map(({ task }) => task);
  expect(shared).toEqual(["brig/broken-makefile"]);
  expect(steps.filter(({ solution }) => solution === null)).toEqual([]);
  expect(new Set(read.map(({ environment }) => environment.network.mode))).toEqual(new Set(["no-network"]));
});
