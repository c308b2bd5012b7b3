import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { type AttemptResult, attemptResultSchema } from "../../src/batch/runs/results/attempt-result.js";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { startResponsesServer, turn } from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";

/** How often the run is killed: more for a longer look. */
const kills = Number(process.env.BRIG_TEST_KILLS ?? 2);

const answerTask = {
  name: "answer",
  prompt: "Write 42 to answer.txt.",
  check: "grep -qx 42 answer.txt",
};

/** A folder with tasks and a run, and the command that runs it. */
async function place(rows: readonly object[] = [answerTask]) {
  const folder = await temporaryDirectory();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const tasks = join(folder.path, "tasks.jsonl");
  await writeFile(tasks, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const output = join(folder.path, "run");
  const home = join(folder.path, "home");
  await mkdir(home);
  const env = { BRIG_HOME: home, CODEX_HOME: home, MINE_KEY: "key-0123456789" };
  return {
    folder: folder.path,
    output,
    run: (...args: string[]) => brigHere(["batch", tasks, "-o", output, ...args], { cwd: folder.path, env }),
    /** The same, as a process. */
    start: (...args: string[]) => brig(["batch", tasks, "-o", output, ...args], { cwd: folder.path, env }),
    runOf: (path: string, ...args: string[]) =>
      brigHere(["batch", path, "-o", output, ...args], { cwd: folder.path, env }),
  };
}

async function resultsOf(output: string): Promise<AttemptResult[]> {
  const lines = (await readFile(join(output, "results.jsonl"), "utf8")).split("\n").filter(Boolean);
  return lines.map((line) => attemptResultSchema.parse(JSON.parse(line)));
}

describe("brig batch with a model", () => {
  it("lets a model at an endpoint work on a task, and grades it", async () => {
    const { output, run } = await place();
    const args = { command: "echo 42 > answer.txt" };
    await using server = await startResponsesServer([
      turn({ calls: [{ id: "call-1", name: "shell_command", args }] }),
      turn({ text: "It is written." }),
    ]);
    const provider = `model_providers.mine={ base_url = "${server.url}", env_key = "MINE_KEY" }`;
    const limits = ["--max-turns", "5", "--timeout", "5m"];
    const done = await run("-c", "model_provider=mine", "-c", provider, "-m", "some-model", ...limits);
    expect(done, done.stderr).toMatchObject({ exitCode: 0 });
    expect(server.requests).toHaveLength(2);
    expect(server.requests[0]?.headers.authorization).toBe("Bearer key-0123456789");
    const sent = JSON.stringify(server.requests[0]?.body.input);
    expect(sent).toContain(answerTask.prompt);
    expect(sent).toContain("You have at most 5 turns");
    expect(sent).toMatch(/Your time for this task ends at \d{4}-/);
    const [result] = await resultsOf(output);
    expect(result).toMatchObject({
      agent: { name: "model", model: "some-model" },
      reward: 1,
      usage: { turns: 2, toolCalls: 1 },
      steps: [{ agent: "completed", agentMessage: "It is written." }],
    });
    const folder = join(output, "attempts/answer/1");
    expect(await readFile(join(folder, result?.files.trajectory ?? ""), "utf8")).toContain("echo 42");
  });

  it("masks an endpoint that refuses, and runs the attempt again when it is asked to", async () => {
    const { output, run } = await place();
    let isDown = true;
    await using server = await startResponsesServer(() =>
      isDown
        ? { kind: "status", status: 401, body: { error: { message: "no such key" } } }
        : turn({ text: "I give up." }),
    );
    const provider = `model_providers.mine={ base_url = "${server.url}", env_key = "MINE_KEY" }`;
    const args = ["-c", "model_provider=mine", "-c", provider, "-m", "some-model", "--retries", "0"];
    expect(await run(...args)).toMatchObject({ exitCode: 1 });
    expect(await resultsOf(output)).toMatchObject([
      { status: "infrastructure", reward: null, failure: { class: "model-endpoint" } },
    ]);
    isDown = false;
    expect(await run(...args, "--retry-infrastructure")).toMatchObject({ exitCode: 0 });
    expect(await resultsOf(output)).toMatchObject([
      { status: "scored", reward: 0, tries: [{ failure: { class: "model-endpoint" } }] },
    ]);
  });

  it("follows the script of a file", async () => {
    const { folder, output, run } = await place();
    const script = join(folder, "script.yaml");
    const step = { calls: [{ shell_command: { command: "echo 42 > answer.txt" } }] };
    await writeFile(script, JSON.stringify({ steps: [step, { text: "done" }] }));
    expect(await run("--agent", "scripted:script.yaml")).toMatchObject({ exitCode: 0 });
    expect(await resultsOf(output)).toMatchObject([{ agent: { name: "scripted" }, reward: 1 }]);
    await writeFile(script, JSON.stringify({ steps: [{ text: "nothing" }] }));
    const changed = await run("--agent", "scripted:script.yaml");
    expect(changed).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("agent.options.script: ") });
  });
});

/** A task in a directory of its own that asks for so much memory. */
async function memoryTask(parent: string, name: string, memoryMb: number): Promise<void> {
  const directory = join(parent, name);
  await mkdir(join(directory, "tests"), { recursive: true });
  await mkdir(join(directory, "environment"));
  const toml = `schema_version = "1.4"
[task]
name = "test/${name}"
[environment]
docker_image = "brig/base"
network_mode = "no-network"
memory_mb = ${memoryMb}
[verifier]
environment_mode = "separate"
`;
  await writeFile(join(directory, "task.toml"), toml);
  await writeFile(join(directory, "instruction.md"), "Do nothing.\n");
  await writeFile(join(directory, "tests/test.sh"), "echo 1 > /logs/verifier/reward.txt\n");
}

describe("brig batch on a machine that is too small", () => {
  it("runs what fits one after the other, says why, and refuses what never fits", async () => {
    const { folder, runOf } = await place();
    const megabytes = totalmem() / 1024 ** 2;
    const tasks = join(folder, "tasks");
    for (const name of ["one", "two"]) await memoryTask(tasks, name, Math.floor(megabytes * 0.6));
    const done = await runOf(tasks, "--agent", "nop", "-n", "2", "--json");
    expect(done, done.stderr).toMatchObject({ exitCode: 0 });
    const events = done.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const kinds = events
      .map(({ type }) => type)
      .filter((type) => ["attempt.started", "attempt.ended", "batch.waiting"].includes(type));
    expect(kinds).toEqual([
      ...["attempt.started", "batch.waiting", "attempt.ended"],
      ...["batch.waiting", "attempt.started", "attempt.ended"],
    ]);
    expect(events.find(({ type }) => type === "batch.waiting")).toMatchObject({
      reason: { kind: "room", resource: "memory" },
    });
    await memoryTask(tasks, "three", Math.floor(megabytes * 2));
    const refused = await runOf(tasks, "--agent", "nop", "-n", "2");
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/test\/three asks for /) });
  });
});

describe("brig batch whose process is killed", () => {
  it("ends with the results of an undisturbed run when the same command runs again", async () => {
    const numbers = [1, 2, 3];
    const rows = numbers.map((number) => ({
      ...answerTask,
      name: `task-${number}`,
      check: `test -s ${number}`,
    }));
    const args = ["--agent", "command:touch 1; echo x > 2", "-n", "2", "--json"];
    const compared = (results: AttemptResult[]) =>
      results
        .map(({ task, attempt, status, reward, tries }) => ({ task, attempt, status, reward, tries }))
        .toSorted((a, b) => (a.task < b.task ? -1 : 1));
    const undisturbed = await place(rows);
    expect(await undisturbed.run(...args)).toMatchObject({ exitCode: 0 });
    const expected = compared(await resultsOf(undisturbed.output));
    expect(expected.map(({ reward }) => reward)).toEqual([0, 1, 0]);

    const { output, run, folder } = await place(rows);
    const seed = Math.random();
    for (let round = 0; round < kills; round++) {
      const killed = run(...args);
      // Between the first stage of the first attempt and the last of the last there are a few seconds.
      createInterface({ input: killed.stdout }).once("line", () => {
        void sleep(((seed + round * 0.618) % 1) * 4000).then(() => killed.kill("SIGKILL"));
      });
      await killed;
    }
    const last = await run(...args);
    expect(last, last.stderr).toMatchObject({ exitCode: 0 });
    expect(compared(await resultsOf(output)), `seed ${seed}`).toEqual(expected);
    const filesOf = async (path: string) =>
      (await readdir(join(path, "attempts"), { recursive: true })).toSorted();
    expect(await filesOf(output), `seed ${seed}`).toEqual(await filesOf(undisturbed.output));
    await removeContainersOf(join(folder, "home/sandboxes"));
  });
});

/** Those of killed processes end with their leases, and here at once. */
async function removeContainersOf(records: string): Promise<void> {
  const engine = await testEngine();
  for (const name of await readdir(records).catch(() => [])) {
    const { containerId } = JSON.parse(await readFile(join(records, name), "utf8"));
    if (typeof containerId === "string") await engine.removeContainer(containerId);
  }
}
