import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { type AttemptResult, attemptResultSchema } from "../../src/batch/runs/results/attempt-result.js";
import { readHostProcesses } from "../../src/lib/owner.js";
import { recordedNow } from "../../src/sandbox/sandbox-records.js";
import { sweep } from "../../src/sandbox/sweep.js";
import { containersOf } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import { type EventProgram, startProgram } from "../support/queue-programs.js";
import { randomNumbers } from "../support/random.js";
import { hasRedis, RedisServer, whyNoRedis } from "../support/redis-server.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";

/** How often something is killed in all: more for a longer look. BRIG_TEST_SEED repeats what a failure has named. */
const kills = Number(process.env.BRIG_TEST_KILLS ?? 6);
const firstSeed = Number(process.env.BRIG_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));

/** An attempt whose fourth worker goes away is given up, so no run is disturbed more often than this. */
const KILLS_A_RUN = 3;
const WORKERS = 2;
const RESTART_WITHIN_MS = 2000;

/** A run that takes longer does not end at all. Its state is printed before vitest gives up. */
const LATE_MS = 200_000;

const agents = ["scripted:script.json", "command:touch 1; echo x > 2", "nop", "oracle"] as const;

/** Tasks that agents solve and that they do not. */
async function writeTasks(folder: string): Promise<void> {
  const script = {
    steps: [{ calls: [{ shell_command: { command: "touch 1; echo x > 2" } }] }, { text: "done" }],
  };
  await writeFile(join(folder, "script.json"), JSON.stringify(script));
  for (const number of [1, 2, 3, 4]) {
    const task = join(folder, "tasks", `task-${number}`);
    for (const name of ["tests", "solution"]) await mkdir(join(task, name), { recursive: true });
    const toml = `schema_version = "1.4"
[task]
name = "test/task-${number}"
[environment]
docker_image = "brig/base"
workdir = "/srv"
network_mode = "no-network"
[verifier]
environment_mode = "separate"
[[artifacts]]
source = "/srv"
`;
    await writeFile(join(task, "task.toml"), toml);
    await writeFile(join(task, "instruction.md"), "Write the file.\n");
    const solve = number === 4 ? "true" : `echo solved > /srv/${number}`;
    await writeFile(join(task, "solution/solve.sh"), `#!/bin/sh\n${solve}\n`);
    const check = `#!/bin/sh\ntest -s /srv/${number} && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n`;
    await writeFile(join(task, "tests/test.sh"), check);
  }
}

/** One run of a batch on a queue of its own, and everything that takes part in it. */
class DisturbedRun implements AsyncDisposable {
  readonly output: string;
  readonly #redis: RedisServer;
  readonly #folder: string;
  readonly #agent: string;
  readonly #queue: readonly string[];
  readonly #started: EventProgram[] = [];
  readonly #workers: EventProgram[] = [];
  #batch: EventProgram;

  static async start(folder: string, { name, agent }: { name: string; agent: string }) {
    return new DisturbedRun(await RedisServer.start(), { folder, name, agent });
  }

  private constructor(
    redis: RedisServer,
    { folder, name, agent }: { folder: string; name: string; agent: string },
  ) {
    this.#redis = redis;
    this.#folder = folder;
    this.#agent = agent;
    this.output = join(folder, name);
    this.#queue = ["--queue", redis.urlWithPassword, "--results", join(folder, `${name}.store`)];
    for (let count = 0; count < WORKERS; count++) this.#workers.push(this.#work());
    this.#batch = this.#submit();
  }

  /** Kills one of those that take part, chosen by `random`, within that time, and starts it again. */
  async disturb(random: () => number, withinMs: number): Promise<string> {
    const delayMs = Math.round(random() * withinMs);
    await Promise.race([sleep(delayMs), this.#batch.ended]);
    const victim = Math.floor(random() * (WORKERS + 2));
    const restart = random() * RESTART_WITHIN_MS;
    const worker = this.#workers[victim];
    if (worker !== undefined) {
      await killed(worker);
      await sleep(restart);
      this.#workers[victim] = this.#work();
      return `worker ${victim} after ${delayMs} ms`;
    }
    if (victim === WORKERS) {
      await this.#redis.kill();
      await sleep(restart);
      await this.#redis.start();
      return `redis after ${delayMs} ms`;
    }
    await killed(this.#batch);
    await sleep(restart);
    this.#batch = this.#submit();
    return `batch after ${delayMs} ms`;
  }

  /** Waits for the batch, gives the same command again, and lets the workers drain. */
  async end(): Promise<void> {
    await this.#batchEnds();
    expect(await this.#batch.ended, this.#batch.errors()).toBe(0);
    const again = this.#submit();
    expect(await again.ended, again.errors()).toBe(0);
    for (const worker of this.#workers) {
      // One that was started again a moment ago does not drain yet: SIGTERM would just end it.
      await Promise.race([worker.has("worker.started"), worker.ended]);
      expect(worker.child.exitCode, worker.errors()).toBeNull();
      worker.child.kill("SIGTERM");
      expect(await worker.ended, worker.errors()).toBe(0);
    }
  }

  /** A program that was just starting as Redis went away has said so and ended, and is started again, as people would. */
  async #batchEnds(): Promise<void> {
    for (;;) {
      const workers = this.#workers.map((worker, index) => worker.ended.then(() => index));
      const ended = await Promise.race([this.#batch.ended.then(() => null), ...workers]);
      const program = ended === null ? this.#batch : this.#workers[ended];
      const isAnswer = program === undefined || !missedRedis(program);
      if (isAnswer && ended === null) return;
      if (isAnswer) throw new Error(`a worker has ended by itself:\n${this.state()}`);
      if (ended === null) this.#batch = this.#submit();
      else this.#workers[ended] = this.#work();
    }
  }

  /** What all programs do, for the message about a run that does not end. */
  state(): string {
    return this.#started
      .map(({ child, events, errors }) =>
        [
          `${child.spawnargs[2]} ${child.pid}, status ${child.exitCode ?? child.signalCode}`,
          ...events.slice(-4).map((event) => JSON.stringify(event)),
          errors().slice(-500),
        ].join("\n  "),
      )
      .join("\n");
  }

  /** The containers that any of the programs has made and that are still there. */
  async containers(): Promise<string[]> {
    const ids = await Promise.all(this.#started.map(({ child }) => containersOf(child.pid)));
    return ids.flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#started.map(killed));
    await collectContainers(join(this.#folder, "home"));
    await this.#redis[Symbol.asyncDispose]();
  }

  #submit(): EventProgram {
    const own = ["--agent", this.#agent, "-k", "2", "-o", this.output];
    return this.#program(["batch", "tasks", ...own, ...this.#queue]);
  }

  #work(): EventProgram {
    return this.#program(["worker", ...this.#queue, "-n", "1", "--lease", "5s"]);
  }

  #program(args: readonly string[]): EventProgram {
    const env = { BRIG_HOME: join(this.#folder, "home"), CODEX_HOME: join(this.#folder, "home") };
    const started = startProgram(args, { cwd: this.#folder, env });
    this.#started.push(started);
    return started;
  }
}

function missedRedis({ child, events, errors }: EventProgram): boolean {
  const hasBegun = events.some(({ type }) => type === "worker.started" || type === "attempt.started");
  return child.exitCode === 125 && !hasBegun && errors().includes("cannot use the Redis server");
}

async function killed({ child, ended }: EventProgram): Promise<void> {
  child.kill("SIGKILL");
  await ended;
}

/** Everything that a run gives, but when and how fast it went. */
async function outcomeOf(output: string) {
  const lines = (await readFile(join(output, "results.jsonl"), "utf8")).trimEnd().split("\n");
  const results = lines.map((line) => attemptResultSchema.parse(JSON.parse(line)));
  const resultOf = async ({ task, attempt }: AttemptResult) => {
    const file = join(output, "attempts", task.replaceAll("/", "__"), `${attempt}/result.json`);
    return attemptResultSchema.parse(JSON.parse(await readFile(file, "utf8")));
  };
  expect(await Promise.all(results.map(resultOf))).toEqual(results);
  return {
    results: results.map(withoutTimes).toSorted(byAttempt),
    files: (await readdir(join(output, "attempts"), { recursive: true })).map(withoutName).toSorted(),
    beside: (await readdir(output)).toSorted(),
  };
}

function byAttempt(one: Pick<AttemptResult, "task" | "attempt">, other: typeof one): number {
  return one.task < other.task ? -1 : one.task > other.task ? 1 : one.attempt - other.attempt;
}

function withoutTimes({ startedAt, endedAt, durations, resources, ...result }: AttemptResult) {
  const { peakMemoryBytes, cpuMs, throttledMs, waitedForCpuMs, ...requested } = resources;
  const session = result.files.session === null ? null : withoutName(result.files.session);
  return { ...result, resources: requested, files: { ...result.files, session } };
}

/** A session is named by chance and by the time. */
function withoutName(path: string): string {
  return path
    .replace(/sessions\/[0-9/]*(rollout-[^/]*)?/, "sessions/$1")
    .replace(/rollout-[^/]*$/, "rollout");
}

/** What `brig gc` does with containers, for those of this test only: the engine is shared with other tests. */
async function collectContainers(home: string): Promise<void> {
  const processes = await readHostProcesses(hostname());
  await sweep(await testEngine(), { now: new Date(), processes, records: recordedNow(home) });
}

async function undisturbed(folder: string, agent: string) {
  await using run = await DisturbedRun.start(folder, { name: "undisturbed", agent });
  const startedAt = performance.now();
  await run.end();
  return { expected: await outcomeOf(run.output), tookMs: performance.now() - startedAt };
}

const runs = Array.from({ length: Math.ceil(kills / KILLS_A_RUN) }, (_, index) => ({
  seed: (firstSeed + index) >>> 0,
  kills: Math.min(KILLS_A_RUN, kills - index * KILLS_A_RUN),
}));

const title = withReason("brig batch --queue of which parts are killed at random moments", whyNoRedis);
describe.skipIf(!hasRedis)(title, () => {
  it.each(runs)("ends as if nothing had been killed (BRIG_TEST_SEED=$seed)", async ({ seed, kills }) => {
    await using folder: TemporaryDirectory = await temporaryDirectory();
    await writeTasks(folder.path);
    const random = randomNumbers(seed);
    const agent = agents[Math.floor(random() * agents.length)] ?? "nop";
    const { expected, tookMs } = await undisturbed(folder.path, agent);
    await using run = await DisturbedRun.start(folder.path, { name: "disturbed", agent });
    const killedParts: string[] = [];
    const of = () => `BRIG_TEST_SEED=${seed}, ${agent}, killed: ${killedParts.join(", ")}`;
    const late = setTimeout(() => process.stderr.write(`${of()} does not end:\n${run.state()}\n`), LATE_MS);
    onTestFinished(() => clearTimeout(late));
    while (killedParts.length < kills) killedParts.push(await run.disturb(random, tookMs / kills));
    await run.end();
    expect(await outcomeOf(run.output), of()).toEqual(expected);
    await collectContainers(join(folder.path, "home"));
    await expect.poll(() => run.containers(), { message: of() }).toEqual([]);
  });
});
