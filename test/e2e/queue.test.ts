import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { attemptResultSchema } from "../../src/batch/runs/results/attempt-result.js";
import { packageRoot } from "../../src/package-root.js";
import { brigHere } from "../support/cli-here.js";
import { startProgram } from "../support/queue-programs.js";
import { hasRedis, PASSWORD, RedisServer, whyNoRedis } from "../support/redis-server.js";
import { startResponsesServer, turn } from "../support/responses-server.js";
import { S3Server } from "../support/s3-server.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";

let folder: TemporaryDirectory;
let count = 0;

beforeAll(async () => {
  folder = await temporaryDirectory();
});

afterAll(() => folder[Symbol.asyncDispose]());

async function startRedis(options?: { usesTls: boolean }): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** A file of so many tasks that a command solves at once, and a folder for the run. */
async function place(rows: number): Promise<{ tasks: string; output: string; results: string }> {
  const name = String(++count);
  const tasks = join(folder.path, `row-${name}.jsonl`);
  const row = `${JSON.stringify({ prompt: "do it", check: "true" })}\n`;
  await writeFile(tasks, row.repeat(rows));
  return { tasks, output: join(folder.path, name), results: join(folder.path, `${name}.results`) };
}

/** A program of brig whose home is in the folder of these tests. */
function start(args: string[], env: Record<string, string> = {}) {
  const own = { BRIG_HOME: join(folder.path, "home"), ...env };
  return startProgram(args, { cwd: folder.path, env: own });
}

async function resultsOf(output: string): Promise<{ task: string; reward: number | null }[]> {
  const lines = (await readFile(join(output, "results.jsonl"), "utf8")).trim().split("\n");
  return lines
    .map((line) => JSON.parse(line))
    .map(({ task, reward }) => ({ task, reward }))
    .toSorted((one, other) => (one.task < other.task ? -1 : 1));
}

/** What all files below a directory contain. */
async function textsBelow(directory: string): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const texts = files.map((entry) => readFile(join(entry.parentPath, entry.name), "latin1"));
  return (await Promise.all(texts)).join("\n");
}

// Without redis-server, which npm test installs if it can, there is nothing to test with.
describe.skipIf(!hasRedis)(withReason("brig batch --queue", whyNoRedis), () => {
  it("runs a task on a worker, with TLS, a password and a bucket, and the worker drains", async () => {
    const redis = await startRedis({ usesTls: true });
    await using bucket = await S3Server.start();
    const { output } = await place(0);
    const example = join(packageRoot, "examples/tasks/python-bug");
    const secrets = { ...bucket.variables, BRIG_REDIS_PASSWORD: PASSWORD };
    const queue = ["--queue", redis.url, "--redis-ca", redis.ca, "--results", "s3://bucket/brig"];
    const worker = start(["worker", ...queue, "-n", "2"], secrets);
    const batch = start(["batch", example, "--agent", "oracle", "-o", output, ...queue], secrets);
    expect(await batch.ended, batch.errors() + worker.errors()).toBe(0);
    expect(await resultsOf(output)).toEqual([{ task: "brig/python-bug", reward: 1 }]);
    expect(await readdir(join(output, "attempts/brig__python-bug/1"))).toContain("artifacts.json");
    const stages = batch.events.filter(({ type }) => type === "attempt.stage").map(({ stage }) => stage);
    expect(stages).toContain("agent");
    worker.child.kill("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(worker.events.at(-1)).toEqual({ type: "worker.ended", attempts: 1 });
    for (const text of [batch.errors(), worker.errors(), JSON.stringify([batch.events, worker.events])])
      expect(text).not.toContain(PASSWORD);
  });

  it("has one result for each attempt when a worker is killed and another one is frozen", async () => {
    const redis = await startRedis();
    const { tasks, output, results } = await place(3);
    const queue = ["--queue", redis.urlWithPassword, "--results", results];
    const work = () => start(["worker", ...queue, "-n", "1", "--lease", "2s"]);
    const [killed, frozen] = [work(), work()];
    const batch = start(["batch", tasks, "--agent", "command:sleep 3", "-o", output, ...queue]);
    await killed.has("attempt.started");
    killed.child.kill("SIGKILL");
    await frozen.has("attempt.started");
    frozen.child.kill("SIGSTOP");
    const whole = work();
    await whole.has("attempt.started");
    const status = await brigHere(["queue", "status", "--json", "--queue", redis.urlWithPassword]);
    expect(JSON.parse(status.stdout)).toMatchObject({ runs: [{ folder: output }] });
    expect(await batch.ended, batch.errors()).toBe(0);
    const names = await resultsOf(output);
    expect(names.map(({ task }) => task)).toEqual([1, 2, 3].map((number) => `row-${count}-${number}`));
    const finished = whole.events.filter(({ type }) => type === "attempt.ended");
    expect(finished.map(({ ending }) => ending)).toEqual(
      [1, 2, 3].map(() => ({ kind: "finished", status: "scored", reward: 1 })),
    );
    frozen.child.kill("SIGCONT");
    await frozen.has("attempt.ended");
    expect(frozen.events).toContainEqual(
      expect.objectContaining({ type: "attempt.ended", ending: { kind: "taken-over" } }),
    );
    expect(await resultsOf(output)).toEqual(names);
  });

  it("lets a worker ask the model with its own key, which does not travel", async () => {
    const redis = await startRedis();
    const { output, results } = await place(0);
    const tasks = join(folder.path, "answer.jsonl");
    const row = { name: "answer", prompt: "Write 42 to answer.txt.", check: "grep -qx 42 answer.txt" };
    await writeFile(tasks, JSON.stringify(row));
    await using server = await startResponsesServer([
      turn({ calls: [{ id: "call-1", name: "shell_command", args: { command: "echo 42 > answer.txt" } }] }),
      turn({ text: "It is written." }),
    ]);
    const provider = `model_providers.mine={ base_url = "${server.url}", env_key = "MINE_KEY" }`;
    const config = ["-c", "model_provider=mine", "-c", provider];
    const queue = ["--queue", redis.urlWithPassword, "--results", results];
    const worker = start(["worker", ...queue, ...config, "-n", "1"], { MINE_KEY: "key-of-the-worker" });
    const args = ["batch", tasks, ...config, "-m", "some-model", "--max-turns", "5", "-o", output, ...queue];
    const batch = start(args, { MINE_KEY: "key-of-the-batch" });
    expect(await batch.ended, batch.errors() + worker.errors()).toBe(0);
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer key-of-the-worker",
      "Bearer key-of-the-worker",
    ]);
    const sent = JSON.stringify(server.requests[0]?.body);
    for (const part of [row.prompt, "some-model", "You have at most 5 turns"]) expect(sent).toContain(part);
    const [line = ""] = (await readFile(join(output, "results.jsonl"), "utf8")).split("\n");
    const result = attemptResultSchema.parse(JSON.parse(line));
    expect(result).toMatchObject({
      agent: { name: "model", model: "some-model" },
      reward: 1,
      usage: { turns: 2, toolCalls: 1 },
      steps: [{ agent: "completed", agentMessage: "It is written." }],
    });
    const trajectory = join(output, "attempts/answer/1", result.files.trajectory ?? "");
    expect(await readFile(trajectory, "utf8")).toContain("echo 42");
    for (const place of [output, results, redis.dataFolder])
      expect(await textsBelow(place)).not.toContain("key-of-the-");
  });

  it("ends with what a worker says whose model has no key, and runs nothing there", async () => {
    const redis = await startRedis();
    const { tasks, output, results } = await place(1);
    const provider = 'model_providers.mine={ base_url = "http://127.0.0.1:1/v1", env_key = "MINE_KEY" }';
    const config = ["-c", "model_provider=mine", "-c", provider];
    const queue = ["--queue", redis.urlWithPassword, "--results", results];
    const worker = start(["worker", ...queue, ...config, "-n", "1"]);
    const batch = start(["batch", tasks, ...config, "-m", "some-model", "-o", output, ...queue], {
      MINE_KEY: "key-of-the-batch",
    });
    expect(await batch.ended, worker.errors()).not.toBe(0);
    expect(batch.errors()).toContain("the model provider mine needs an API key, and MINE_KEY is not set");
    expect(batch.errors()).not.toContain("tried again");
  });

  it("goes on after its own end and that of Redis, and runs no attempt twice that has ended", async () => {
    const redis = await startRedis();
    const { tasks, output, results } = await place(2);
    const queue = ["--queue", redis.urlWithPassword, "--results", results];
    const worker = start(["worker", ...queue, "-n", "1"]);
    const command = ["batch", tasks, "--agent", "command:sleep 2", "-o", output, ...queue];
    const first = start(command);
    await worker.has("attempt.started");
    first.child.kill("SIGKILL");
    await first.ended;
    await redis.kill();
    await redis.start();
    await worker.has("attempt.ended");
    const second = start(command);
    expect(await second.ended, second.errors()).toBe(0);
    expect(await resultsOf(output)).toEqual(
      [1, 2].map((number) => ({ task: `row-${count}-${number}`, reward: 1 })),
    );
    const finished = worker.events.filter(({ type }) => type === "attempt.ended");
    expect(finished).toHaveLength(2);
  });

  it.each([
    [["--queue", "redis://127.0.0.1:1", "--results", "there"], 125, "ECONNREFUSED"],
    [["--queue", "redis://:geheim@127.0.0.1/x", "--results", "there"], 2, "not the number of a database"],
    [["--queue", "redis://127.0.0.1:1"], 2, "--results is missing"],
    [["--results", "there"], 2, "--results is for a queue"],
    [
      ["--queue", "redis://127.0.0.1:1", "--results", "there", "--prebuild"],
      2,
      "--prebuild is for the engine",
    ],
    [["--queue", "rediss://h", "--results", "there", "--redis-ca", "nosuch"], 2, "nosuch does not exist"],
  ])("with %j exits with %i and says: %s", async (args, exitCode, message) => {
    const { tasks, output } = await place(1);
    const given = await brigHere(["batch", tasks, "--agent", "nop", "-o", output, ...args], {
      cwd: folder.path,
    });
    expect(given.exitCode).toBe(exitCode);
    expect(given.stderr).toContain(message);
    expect(given.stderr).not.toContain("geheim");
  });
});
