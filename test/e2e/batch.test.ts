import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { summarySchema } from "../../src/batch/report/summary.js";
import { packageRoot } from "../../src/package-root.js";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const examples = join(packageRoot, "examples/tasks");
const two = ["--task", "*/python-bug", "--task", "*/messy-csv"];

let folder: TemporaryDirectory;
let count = 0;

beforeAll(async () => {
  folder = await temporaryDirectory();
});

afterAll(() => folder[Symbol.asyncDispose]());

/** A folder for a run, and the command that runs it. */
function place() {
  const output = join(folder.path, String(++count));
  const env = { BRIG_HOME: join(folder.path, "home") };
  return {
    output,
    run: (...args: string[]) =>
      brigHere(["batch", examples, "-o", output, ...args], { cwd: folder.path, env }),
    /** The same, as a process. */
    start: (...args: string[]) => brig(["batch", examples, "-o", output, ...args], { cwd: folder.path, env }),
    /** Another task, with this solution. */
    task: async (name: string, solution: string): Promise<string> => {
      const directory = join(folder.path, "tasks", name);
      await cp(join(examples, "python-bug"), directory, { recursive: true });
      const file = join(directory, "task.toml");
      const settings = await readFile(file, "utf8");
      await writeFile(file, settings.replace("brig/python-bug", `test/${name}`));
      await writeFile(join(directory, "solution/solve.sh"), `#!/bin/sh\n${solution}`);
      return directory;
    },
  };
}

const eventsOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line): { type: string; [field: string]: unknown } => JSON.parse(line));

async function summaryOf(output: string) {
  return summarySchema.parse(JSON.parse(await readFile(join(output, "summary.json"), "utf8")));
}

describe("brig batch", () => {
  it("runs the tasks, says what they gave, and runs nothing again", async () => {
    const { output, run, start } = place();
    const first = await start("--agent", "oracle", ...two);
    expect(first).toMatchObject({ exitCode: 0 });
    expect(first.stdout).toMatch(/^brig\/python-bug +1\.000 +1\/1 +1 separate +0$/m);
    expect(first.stdout).toContain("2 of 2 attempts have a score\npassed: 2 separate\nreward 1.000");
    expect(first.stderr).toContain("brig/python-bug #1: reward 1 in ");
    expect((await readdir(output)).toSorted()).toEqual([
      "attempts",
      "batch.json",
      "junit.xml",
      "results.jsonl",
      "summary.json",
    ]);
    const again = await run("--agent", "oracle", "--json", ...two);
    expect(again.exitCode).toBe(0);
    expect(eventsOf(again.stdout)).toMatchObject([
      { type: "batch.started", attempts: 2, finished: 2 },
      { type: "batch.ended", stop: null, summary: { attempts: { scored: 2 } } },
    ]);
  });

  it("gives nothing to an agent that does nothing, and fails where that is not enough", async () => {
    const { output, run } = place();
    const args = ["--agent", "nop", "-k", "2", "-n", "2", "--task", "*/python-bug"];
    expect(await run(...args)).toMatchObject({ exitCode: 0 });
    expect(await summaryOf(output)).toMatchObject({
      attempts: { planned: 2, scored: 2, passed: 0 },
      reward: { value: 0 },
    });
    expect(await run(...args, "--min-reward", "0.5")).toMatchObject({ exitCode: 1 });
    const other = await run(...args, "--agent", "oracle", "--timeout-multiplier", "2");
    expect(other.exitCode).toBe(2);
    expect(other.stderr).toContain("agent.name: nop → oracle\n  limits.timeoutMultiplier: nothing → 2");
  });

  it("runs nothing if the model has no key", async () => {
    const { output, run } = place();
    const { exitCode, stdout, stderr } = await run("--agent", "model", ...two, "--json");
    expect({ exitCode, last: eventsOf(stdout).at(-1) }).toMatchObject({
      exitCode: 2,
      last: { type: "error", code: "model.auth", hint: expect.stringContaining("OPENAI_API_KEY") },
    });
    expect(stderr).not.toContain("tried again");
    expect((await readFile(join(output, "results.jsonl"), "utf8").catch(() => "")).trim()).toBe("");
  });

  it("starts nothing more after SIGINT, and cancels what runs after another one", async () => {
    const { output, start, task } = place();
    const endless = await task("endless", "exec sleep 10000\n");
    const args = ["--agent", "oracle", "-n", "1", "--json", "--task", "*/endless", "--task", "*/messy-csv"];
    const child = start(endless, ...args);
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { type, stage } = JSON.parse(line);
      if (type === "attempt.stage" && stage === "agent") child.kill("SIGINT");
      if (type === "batch.draining") child.kill("SIGINT");
    });
    const cancelled = await child;
    expect(cancelled.exitCode).toBe(130);
    const events = eventsOf(cancelled.stdout);
    expect(events.filter(({ type }) => type === "attempt.started")).toHaveLength(1);
    expect(events).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: "batch.draining", reason: { kind: "interrupted" }, running: 1 }),
        expect.objectContaining({ type: "batch.stopping", running: 1 }),
        expect.objectContaining({
          type: "attempt.ended",
          result: expect.objectContaining({ status: "cancelled" }),
        }),
      ]),
    );
    expect(await readFile(join(output, "results.jsonl"), "utf8")).toBe("");
    expect(await summaryOf(output)).toMatchObject({ attempts: { planned: 2, missing: 2 } });
    expect(await containersOf(child.pid)).toEqual([]);
  });

  it("only says what it would run with --dry-run", async () => {
    const { output, run } = place();
    const { stdout, exitCode } = await run(
      "--agent",
      "nop",
      "--dry-run",
      "--sample",
      "3",
      "--seed",
      "7",
      "--json",
    );
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toHaveLength(3);
    await expect(readdir(output)).rejects.toThrow("ENOENT");
  });

  it("gives nothing to an attack on the grader, and keeps what it did", async () => {
    const { output, run } = place();
    const args = ["--agent", "cheat:artifact-writes-reward", "--task", "*/python-bug"];
    expect(await run(...args)).toMatchObject({ exitCode: 0 });
    const [line = ""] = (await readFile(join(output, "results.jsonl"), "utf8")).split("\n");
    expect(JSON.parse(line)).toMatchObject({
      reward: 0,
      agent: { name: "cheat:artifact-writes-reward" },
      steps: [{ agentMessage: "attacks: 1 in place, 0 not possible here, 0 failed" }],
    });
    const kept = join(output, "attempts/brig__python-bug/1/agent-output.txt");
    expect(await readFile(kept, "utf8")).toBe("planted artifact-writes-reward\n");
  });

  it("runs a command of the task's container", async () => {
    const { output, run } = place();
    const command =
      'command:test -s "$BRIG_INSTRUCTION_FILE" && sed -n 1p "$BRIG_INSTRUCTION_FILE" >/dev/null';
    expect(await run("--agent", command, "--task", "*/python-bug")).toMatchObject({ exitCode: 0 });
    const [line = ""] = (await readFile(join(output, "results.jsonl"), "utf8")).split("\n");
    expect(JSON.parse(line)).toMatchObject({ reward: 0, steps: [{ agent: "completed" }] });
  });

  it.each([
    [["--agent", "nosuch"], "there is no agent"],
    [["--agent", "cheat:nosuch"], 'there is no attack "nosuch"'],
    [["--agent", "nop", "--task", "nosuch"], 'no task is named "nosuch"'],
    [["--agent", "scripted:nosuch.yaml"], "nosuch.yaml"],
    [["--agent", "model", "-m", "nosuch", "--max-cost", "3"], "does not know its price"],
    [["--agent", "nop", "-n", "0"], "at least 1"],
    [["--agent", "nop", "--retries", "engine-broken=1"], "There is no class engine-broken"],
  ])("refuses %j", async (args, message) => {
    const { run } = place();
    const { exitCode, stderr } = await run(...args);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });
});
