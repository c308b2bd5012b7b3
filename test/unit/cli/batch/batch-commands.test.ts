import { join } from "node:path";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { defineBatch } from "../../../../src/cli/batch/batch-command.js";
import { testContext } from "../../../support/cli-context.js";
import { fakeEngine, reply } from "../../../support/fake-engine.js";
import { directoryWith } from "../../../support/task-directories.js";

async function batch(cwd: string, argv: string[], variables: Record<string, string> = {}) {
  const context = { ...testContext({ variables }), cwd };
  const command = new Command("batch").exitOverride();
  defineBatch(command, context);
  await command.parseAsync(argv, { from: "user" });
  return { ...context.written(), exitStatus: context.exitStatus };
}

describe("brig batch init and lint", () => {
  it("write a task in which nothing is found", async () => {
    const cwd = await directoryWith({});
    expect((await batch(cwd, ["init", "new"])).stdout.split("\n")).toContain("new/task.toml");
    expect(await batch(cwd, ["lint", "new"])).toMatchObject({
      stdout: "1 task, 0 errors, 0 warnings\n",
      exitStatus: 0,
    });
  });

  const broken = { "t/task.toml": "\n[agent]\ntimeout_sec = '\\u001b[31m1'\n" };

  it("print findings relative to the current directory, and fail if one is an error", async () => {
    const cwd = await directoryWith({ "t/task.toml": "[agent]\ntimeout_sec = 'soon'\n" });
    const { stdout, exitStatus } = await batch(cwd, ["lint", "."]);
    expect(exitStatus).toBe(1);
    expect(stdout).toBe(
      [
        "LEVEL  RULE      WHERE        WHAT",
        'error  unusable  t/task.toml  agent.timeout_sec is "soon" and must be a number',
        "0 tasks, 1 error, 0 warnings\n",
      ].join("\n"),
    );
  });

  it("print JSON", async () => {
    const cwd = await directoryWith(broken);
    const { stdout, exitStatus } = await batch(cwd, ["lint", "--json", "t"]);
    expect(exitStatus).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      tasks: 0,
      errors: 1,
      findings: [{ rule: "unusable", level: "error", source: join(cwd, "t"), file: "task.toml" }],
    });
    expect(stdout).not.toContain("\u001b");
  });
});

describe("brig batch audit", () => {
  it("looks for images by the names that the configuration gives them, those of verifiers as well", async () => {
    const toml = `
environment = { docker_image = "python:3.12" }
verifier = { environment = { docker_image = "grader:1" } }
agent = { timeout_sec = 1 }`;
    const cwd = await directoryWith({
      "t/task.toml": toml,
      "t/instruction.md": "do it",
      "t/tests/test.sh": "#!/bin/sh\n",
      "home/config.toml":
        '[images.alias]\n"python:3.12" = "mirror.example/python:3"\n"grader:1" = "mirror.example/grader:1"\n',
    });
    await using engine = await fakeEngine((_, response) => reply(response, 404, { message: "none" }));
    const variables = { BRIG_HOME: join(cwd, "home"), DOCKER_HOST: engine.address };
    const auditing = batch(cwd, ["audit", "t", "--offline"], variables);
    await expect(auditing).rejects.toThrow(/ mirror\.example\/grader:1\n +mirror\.example\/python:3$/);
  });
});
