import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type AttemptResult, attemptResultSchema } from "../../src/batch/runs/results/attempt-result.js";
import { packageRoot } from "../../src/package-root.js";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";

/** That each of the attacks works is shown against a grader that believes everything, in test/docker/runs/attacks. */
it.each([
  ["oracle", 1],
  ["nop", 0],
  ["cheat", 0],
])("at every example, the agent %s scores %d", async (agent, reward) => {
  await using folder = await temporaryDirectory();
  const output = join(folder.path, "run");
  const args = ["batch", join(packageRoot, "examples/tasks"), "--agent", agent, "-o", output, "-n", "3"];
  const env = { BRIG_HOME: join(folder.path, "home") };
  expect(await brigHere(args, { cwd: folder.path, env })).toMatchObject({ exitCode: 0 });
  const results = await readResults(output);
  expect(results.map((result) => [result.task, result.reward])).toEqual(
    results.map((result) => [result.task, reward]),
  );
  expect(results).toHaveLength(8);
  const shared = results.filter(({ steps }) => steps.some((step) => step.verification?.mode === "shared"));
  expect(shared.map(({ task }) => task)).toEqual(["brig/broken-makefile"]);
});

async function readResults(output: string): Promise<AttemptResult[]> {
  const lines = (await readFile(join(output, "results.jsonl"), "utf8")).trimEnd().split("\n");
  return lines.map((line) => attemptResultSchema.parse(JSON.parse(line)));
}
