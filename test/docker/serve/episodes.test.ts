import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Task } from "../../../src/batch/tasks/task.js";
import { type TemporaryDirectory, temporaryDirectory } from "../../support/sandbox.js";
import { openServed, type Served } from "../../support/served.js";
import { stepOf, taskOf } from "../../support/task-attempts.js";

const testScript =
  "#!/bin/sh\ngrep -qx 42 /app/answer.txt && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n";

let directory: TemporaryDirectory;
let served: Served;

beforeAll(async () => {
  directory = await temporaryDirectory();
  const task = await taskOf(directory.path, {
    testScript,
    step: { solution: { kind: "commands", commands: ["echo 42 > /app/answer.txt"] } },
  });
  const step = await stepOf(directory.path, {});
  const several: Task = {
    ...(await taskOf(directory.path, { steps: [step, step] })),
    name: "made-for/several",
  };
  served = await openServed({ tasks: [task, several] });
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

describe("a sandbox of a task", () => {
  it("is the task's container, and what the client leaves in it is graded where it cannot reach", async () => {
    const sandbox = await served.client.createSandbox({ task: "test" });
    expect(sandbox.record).toMatchObject({
      task: "made-for/test",
      instruction: "make /app/answer.txt",
      workingDirectory: "/app",
      mode: null,
      state: "open",
    });
    // Neither the tests nor a reward of its own making help.
    const forged = await sandbox.exec([
      "sh",
      "-c",
      "ls /tests; mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
    ]);
    expect(forged.stderr).toContain("/tests");
    await sandbox.files.write("/app/answer.txt", "41\n");
    const running = sandbox.exec(["sleep", "1000"]);
    running.catch(() => undefined);
    const result = await sandbox.grade();
    await expect(running).rejects.toMatchObject({ code: "sandbox.gone" });
    expect(result).toMatchObject({ status: "scored", reward: 0, agent: { name: "remote" } });
    expect(await sandbox.grade()).toEqual(result);
    await expect(sandbox.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone" });
    expect((await served.client.health()).sandboxes).toBe(0);
    await sandbox.delete();
  });

  it("scores what is right, and can be given up without a grade", async () => {
    const [right, givenUp] = await Promise.all([
      served.client.createSandbox({ task: "made-for/test" }),
      served.client.createSandbox({ task: "made-for/test" }),
    ]);
    await right.exec(["sh", "-c", "echo 42 > answer.txt"]);
    const [result] = await Promise.all([right.grade(), givenUp.delete()]);
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    await expect(givenUp.grade()).rejects.toMatchObject({ code: "serve.unknown" });
    await right.delete();
    expect(await served.client.listSandboxes()).toEqual([]);
  });

  it("needs a task of one step", async () => {
    await expect(served.client.createSandbox({ task: "several" })).rejects.toMatchObject({
      code: "usage.invalid",
    });
  });
});

it("a sandbox of no task cannot be graded", async () => {
  await using sandbox = await served.client.createSandbox();
  await expect(sandbox.grade()).rejects.toMatchObject({ code: "usage.invalid" });
  expect((await sandbox.exec(["true"])).exitCode).toBe(0);
});

describe("an episode", () => {
  it("has an agent work on a task, is graded, and can be graded again from what was kept", async () => {
    const [solved, nothing] = await Promise.all([
      served.client.runEpisode({ task: "test", agent: "oracle" }),
      served.client.runEpisode({ task: "test" }),
    ]);
    expect(solved).toMatchObject({
      status: "ended",
      agent: "oracle",
      result: { status: "scored", reward: 1 },
    });
    expect(nothing).toMatchObject({ status: "ended", agent: "nop", result: { status: "scored", reward: 0 } });
    const again = await served.client.gradeEpisode(solved.id);
    expect(again.result).toMatchObject({ status: "scored", reward: 1 });
    await expect(served.client.trajectory(solved.id)).rejects.toMatchObject({ code: "serve.unknown" });
    await expect(served.otherClient.getEpisode(solved.id)).rejects.toMatchObject({ code: "serve.unknown" });
    expect(await served.otherClient.listEpisodes()).toEqual([]);
    await served.client.deleteEpisode(solved.id);
    expect((await served.client.listEpisodes()).map(({ id }) => id)).toEqual([nothing.id]);
  });

  it("needs no task: an instruction and a check are enough", async () => {
    const episode = await served.client.runEpisode({
      instruction: "Write yes to the file done",
      check: "grep -qx yes done",
      agent: { command: 'grep -q "Write yes" "$BRIG_INSTRUCTION_FILE" && echo yes > done' },
    });
    expect(episode).toMatchObject({ task: "instruction", result: { status: "scored", reward: 1 } });
  });

  it("that nobody waits for any more is ended, and leaves nothing", async () => {
    const gone = new AbortController();
    const running = served.client.runEpisode(
      { task: "test", agent: { command: "sleep 1000" } },
      { signal: gone.signal },
    );
    running.catch(() => undefined);
    const stages = async () => (await served.client.listEpisodes()).map(({ stage }) => stage);
    await expect.poll(stages, { timeout: 60_000 }).toContain("agent");
    gone.abort(new Error("nobody waits"));
    await expect(running).rejects.toThrow("nobody waits");
    await expect.poll(async () => (await served.client.health()).sandboxes, { timeout: 60_000 }).toBe(0);
  });

  it("that cannot be is refused", async () => {
    const create = async (options: object) => await served.client.createEpisode(options);
    await expect(create({ task: "none" })).rejects.toMatchObject({ code: "serve.unknown" });
    await expect(create({ instruction: "x" })).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(create({ task: "test", check: "true" })).rejects.toMatchObject({ code: "usage.invalid" });
    await expect(create({ task: "test", agent: "model" })).rejects.toMatchObject({ code: "usage.invalid" });
  });
});
