import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { packTar } from "../../../src/sandbox/docker/calls/tar.js";
import { ensureImages } from "../../../src/sandbox/images/ensure.js";
import { testEngine } from "../../support/engine.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, shellAgent, taskOf } from "../../support/task-attempts.js";
import { testLabels } from "../../support/test-run.js";

const EXPECTS_42 = `#!/bin/sh
id -u; cat /tests/expected
[ "$(cat /app/answer.txt)" = "$(cat /tests/expected)" ] && r=1 || r=0
echo $r > /logs/verifier/reward.txt
`;

/** An image on brig/base whose /tests has these files, and which goes away with its owner. */
async function imageWith(
  files: Readonly<Record<string, string>>,
): Promise<{ tag: string } & AsyncDisposable> {
  const engine = await testEngine();
  const { base } = await ensureImages(engine, { names: ["base"] });
  const lines = Object.keys(files).map((name) => `COPY ${name} /tests/${name}`);
  const context = Object.entries({ ...files, Dockerfile: [`FROM ${base}`, ...lines].join("\n") });
  // Nobody may execute them: Harbor's own runner makes the script executable.
  const entries = context.map(([path, content]) => ({ path, mode: 0o644, content: Buffer.from(content) }));
  const tag = `brig-test/tests-in-image:${Object.values(testLabels()).join("-")}`;
  await engine.buildImage(packTar(entries), { tag });
  return { tag, [Symbol.asyncDispose]: async () => await engine.removeImage(tag) };
}

/** What an attempt gives whose verifier has an image of its own, and nothing else. */
async function graded(
  directory: string,
  { tag, agent, user = null }: { tag: string; agent: string; user?: string | null },
) {
  const task = await taskOf(directory);
  const [step] = task.steps;
  if (step === undefined) throw new TypeError("no step");
  const environment = { ...task.environment, image: { kind: "reference", reference: tag } } as const;
  const check = { kind: "reward-files", directory: null, script: "test.sh" } as const;
  const steps = [{ ...step, verifier: { ...step.verifier, user, environment, check } }];
  const given = { task: { ...task, steps }, agent: shellAgent(agent), isOneOfMany: true };
  const attempt = await attemptAt(directory, given);
  return { result: await runAttempt(attempt), folder: attempt.folder };
}

describe("tests that are in the verifier's own image", () => {
  sandboxTest.for([
    [null, "0"],
    ["nobody", "65534"],
  ] as const)("grade the artifacts as %s", async ([user, uid], { directory }) => {
    await using image = await imageWith({ "test.sh": EXPECTS_42, expected: "42\n" });
    const given = { tag: image.tag, user };
    const { result, folder } = await graded(directory, { ...given, agent: "echo 42 > answer.txt" });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(await readFile(join(folder, "test-output.txt"), "utf8")).toBe(`${uid}\n42\n`);
    const wrong = await graded(directory, { ...given, agent: "echo 41 > answer.txt" });
    expect(wrong.result).toMatchObject({ status: "scored", reward: 0 });
  });

  sandboxTest("are not replaced by what an agent has left in /tests", async ({ directory }) => {
    await using image = await imageWith({ "test.sh": EXPECTS_42, expected: "42\n" });
    const agent = "mkdir -p /tests && echo 41 | tee /tests/expected > answer.txt";
    const { result } = await graded(directory, { tag: image.tag, agent });
    expect(result).toMatchObject({ status: "scored", reward: 0 });
  });

  sandboxTest("leave an attempt unscored, with the cause, if they are not there", async ({ directory }) => {
    await using image = await imageWith({ expected: "42\n" });
    const { result, folder } = await graded(directory, { tag: image.tag, agent: "echo 42 > answer.txt" });
    expect(result).toMatchObject({
      status: "unscored",
      reward: null,
      failure: { class: "ungradable", message: "the image of the tests has no file /tests/test.sh" },
      steps: [{ agent: "completed" }],
    });
    expect(await readFile(join(folder, "artifacts/answer.txt"), "utf8")).toBe("42\n");
  });
});
