import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type AgentWork, type AttemptAgent, noUsage } from "../../src/batch/runs/agents/attempt-agent.js";
import type { Attempt } from "../../src/batch/runs/attempt/attempt.js";
import { openTaskSandbox } from "../../src/batch/runs/place/task-sandbox.js";
import type { Task, TaskEnvironment, TaskStep, TaskVerifier } from "../../src/batch/tasks/task.js";
import { readEnvironment } from "../../src/lib/env.js";
import type { Sandbox } from "../../src/sandbox/sandbox.js";
import { testEngine } from "./engine.js";

const noNetwork = { mode: "no-network", allowedHosts: [] } as const;

export interface TaskParts {
  environment?: Partial<TaskEnvironment>;
  verifier?: Partial<TaskVerifier>;
  step?: Partial<TaskStep>;
  /** Of the only step; the verifier's `check` then is reward files. */
  testScript?: string;
  steps?: TaskStep[];
  rewardStrategy?: Task["rewardStrategy"];
}

/** A task on brig/base whose only test is a script. Its files are below `directory`. */
export async function taskOf(directory: string, parts: TaskParts = {}): Promise<Task> {
  const only = parts.steps === undefined ? [await stepOf(directory, parts)] : parts.steps;
  return {
    name: "made-for/test",
    format: "harbor",
    source: directory,
    checksum: "0".repeat(64),
    parts: { instruction: "", environment: "", tests: "", solution: "", settings: "" },
    metadata: {},
    environment: {
      image: { kind: "reference", reference: "brig/base" },
      files: null,
      workdir: "/app",
      env: {},
      network: noNetwork,
      limits: { cpus: null, memoryMb: null, storageMb: null },
      healthcheck: null,
      ...parts.environment,
    },
    steps: only,
    rewardStrategy: parts.rewardStrategy ?? "mean",
    warnings: [],
  };
}

/** A step whose tests are one script. */
export async function stepOf(
  directory: string,
  { verifier, step, testScript }: TaskParts,
): Promise<TaskStep> {
  const tests = await mkdtemp(join(directory, "tests-"));
  await writeFile(join(tests, "test.sh"), testScript ?? "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n");
  const phase = { timeoutSec: 60, user: null, network: null };
  return {
    name: null,
    instruction: "make /app/answer.txt",
    agent: phase,
    files: null,
    setupScript: null,
    healthcheck: null,
    solution: null,
    artifacts: [{ source: "answer.txt", destination: null, exclude: [] }],
    minRewards: null,
    ...step,
    verifier: {
      ...phase,
      mode: "separate",
      env: {},
      environment: null,
      check: { kind: "reward-files", directory: tests, script: "test.sh" },
      ...verifier,
    },
  };
}

/** An agent that runs one shell script in the container. */
export function shellAgent(script: string): AttemptAgent {
  return agentOf(async ({ sandbox, cwd, signal }) => {
    await sandbox.exec(["/bin/bash", "-c", script], { cwd, signal });
  });
}

export function agentOf(work: (work: AgentWork) => Promise<void>): AttemptAgent {
  return {
    name: "scripted",
    model: null,
    run: async (given) => {
      await work(given);
      return { ending: "completed", message: null, usage: noUsage, files: {} };
    },
  };
}

/** An attempt at a task, with a folder of its own below `directory`. */
export async function attemptAt(
  directory: string,
  { task, agent, ...rest }: Pick<Attempt, "task" | "agent"> & Partial<Attempt>,
): Promise<Attempt> {
  const engine = await testEngine();
  const folder = await mkdtemp(join(directory, "attempt-"));
  const brigHome = join(directory, "home");
  await mkdir(brigHome, { recursive: true });
  return {
    task,
    agent,
    attempt: 1,
    images: {
      async ready(image) {
        const reference = image.kind === "reference" ? image.reference : image.context;
        const found = await engine.inspectImage(reference);
        if (found === null) throw new Error(`no image ${reference}`);
        return { id: found.id, reference, [Symbol.dispose]: () => undefined };
      },
    },
    engine,
    environment: { ...readEnvironment(), brigHome },
    folder,
    limits: {},
    ...rest,
  };
}

/** A container of brig/base as attempts use it, in which nothing has run. */
export async function openBare(directory: string): Promise<{ sandbox: Sandbox } & AsyncDisposable> {
  const { environment } = await taskOf(directory);
  const {
    engine,
    images,
    environment: variables,
  } = await attemptAt(directory, {
    task: await taskOf(directory),
    agent: shellAgent("true"),
  });
  const { id: imageId } = await images.ready(environment.image);
  const { sandbox } = await openTaskSandbox(
    { engine, environment: variables },
    {
      environment: { ...environment, workdir: "/" },
      imageId,
      user: null,
      network: environment.network,
      env: {},
    },
  );
  return { sandbox, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
}
