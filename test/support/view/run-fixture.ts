import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type AttemptResult, attemptResultSchema } from "../../../src/batch/runs/results/attempt-result.js";

/** Parts of a result that differ from a plain one with the full reward. */
export type ResultChanges = Partial<AttemptResult> & Pick<AttemptResult, "task">;

const start = Date.UTC(2026, 0, 2, 9, 0, 0);

/** A valid result of an attempt. Nothing in it depends on the time or on chance. */
export function attemptResult(changes: ResultChanges): AttemptResult {
  const reward = changes.reward === undefined ? 1 : changes.reward;
  return attemptResultSchema.parse({
    schemaVersion: 1,
    attempt: 1,
    taskChecksum: "5f".repeat(32),
    agent: { name: "model", model: "example-1" },
    status: "scored",
    reward,
    rewards: reward === null ? {} : { reward },
    failure: null,
    steps: [
      {
        name: null,
        agent: "completed",
        agentMessage: "The tests pass now.",
        rewards: reward === null ? null : { reward },
        verification: {
          mode: "separate",
          verifier: "scored",
          message: null,
          exitCode: reward === 1 ? 0 : 1,
          tests: [
            { name: "test_reads_the_file", status: "passed" },
            { name: "test_keeps_the_order", status: reward === 1 ? "passed" : "failed" },
          ],
          findings: [],
        },
      },
    ],
    usage: {
      inputTokens: 12_000,
      cachedInputTokens: 8000,
      outputTokens: 900,
      costUsd: 0.0312,
      turns: 6,
      toolCalls: 9,
    },
    resources: {
      memoryRequestedBytes: 2 ** 31,
      memoryLimitBytes: 3 * 2 ** 31,
      peakMemoryBytes: 310_000_000,
      cpuMs: 8400,
      throttledMs: 120,
      diskRequestedBytes: null,
    },
    startedAt: new Date(start).toISOString(),
    endedAt: new Date(start + 95_000).toISOString(),
    durations: { environmentMs: 4000, agentMs: 83_000, verifierMs: 8000 },
    tries: [],
    imageId: `sha256:${"ab".repeat(32)}`,
    files: {
      trajectory: null,
      session: null,
      testOutput: null,
      diff: null,
      agentOutput: null,
      proof: null,
    },
    ...changes,
  });
}

/** The files of an attempt, by their paths relative to its folder. */
export type AttemptFiles = Readonly<Record<string, string>>;

export interface RunFixture {
  settings?: Record<string, unknown>;
  tasks?: readonly { name: string; tags?: readonly string[] }[];
  attempts: readonly { result: AttemptResult; files?: AttemptFiles }[];
}

/** Writes the folder of a run as `brig batch` does. */
export async function writeRun(
  folder: string,
  { settings = {}, tasks, attempts }: RunFixture,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const names = [...new Set(attempts.map(({ result }) => result.task))];
  const batch = {
    schemaVersion: 1,
    brigVersion: "0.1.0",
    settings,
    tasks: tasks ?? names.map((name) => ({ name })),
  };
  await writeFile(join(folder, "batch.json"), JSON.stringify(batch));
  await writeFile(
    join(folder, "results.jsonl"),
    attempts.map(({ result }) => `${JSON.stringify(result)}\n`).join(""),
  );
  for (const { result, files = {} } of attempts) {
    for (const [path, text] of Object.entries(files)) {
      const file = join(folder, "attempts", result.task.replaceAll("/", "__"), String(result.attempt), path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  }
}

/** The names that a result has for the files that `exampleFiles` gives. */
export const exampleFileNames: AttemptResult["files"] = {
  trajectory: "agent/trajectory.json",
  session: null,
  testOutput: "verifier/test-output.txt",
  diff: "changes.diff",
  agentOutput: null,
  proof: "proof.json",
};

export function exampleFiles(task: string, { output = "2 passed" } = {}): AttemptFiles {
  const trajectory = {
    schema_version: "ATIF-v1.7",
    agent: { name: "brig", version: "0.1.0" },
    steps: [
      { step_id: 1, source: "user", message: `Make the tests of ${task} pass.` },
      {
        step_id: 2,
        source: "agent",
        timestamp: "2026-01-02T09:00:10.000Z",
        model_name: "example-1",
        message: "I look at the code first.",
        reasoning_content: "The test expects the order of the file.",
        tool_calls: [
          { tool_call_id: "a", function_name: "shell_command", arguments: { command: "cat sort.py" } },
        ],
        observation: {
          results: [
            {
              source_call_id: "a",
              content: "def read(path):\n    return set(open(path))\n",
              extra: { exit_code: 0, duration_ms: 14 },
            },
          ],
        },
        metrics: { prompt_tokens: 4000, completion_tokens: 210 },
      },
      { step_id: 3, source: "agent", message: "The tests pass now." },
    ],
  };
  return {
    "agent/trajectory.json": JSON.stringify(trajectory),
    "verifier/test-output.txt": `${output}\n`,
    "changes.diff": [
      "diff --git a/sort.py b/sort.py",
      "--- a/sort.py",
      "+++ b/sort.py",
      "@@ -1,2 +1,2 @@",
      " def read(path):",
      "-    return set(open(path))",
      "+    return list(open(path))",
      "",
    ].join("\n"),
    "proof.json": `${JSON.stringify({ network: "none", runtime: "runc", readOnlyRoot: true }, null, 2)}\n`,
  };
}

const endings = ["completed", "completed", "timed-out", "limit", "failed"] as const;
const kinds = ["parsing", "networking", "sorting", "security", "build"];

/** A run of any size with all kinds of results, always the same. `seed` makes another one of the same tasks. */
export function mixedRun(count: number, { seed = 0, files = true } = {}): RunFixture {
  const attempts = Array.from({ length: count }, (_, at) => {
    const number = Math.floor(at / 2);
    const task = `example/${kinds[number % kinds.length]}-${String(number).padStart(5, "0")}`;
    const chance = ((at + 1 + seed * 7) * 2_654_435_761) % 1000;
    const startedAt = start + at * 1500;
    const wallMs = 20_000 + ((chance * 977) % 400_000);
    const reward = chance < 520 ? 1 : chance < 640 ? (chance % 9) / 10 : 0;
    const isBroken = chance >= 970;
    const ending = reward === 1 ? "completed" : (endings[chance % endings.length] ?? "completed");
    const plain = attemptResult({ task, reward });
    const [step] = plain.steps;
    const result = attemptResult({
      task,
      attempt: (at % 2) + 1,
      status: isBroken ? "infrastructure" : "scored",
      reward: isBroken ? null : reward,
      failure: isBroken
        ? {
            class: chance % 2 === 0 ? "host-out-of-memory" : "model-endpoint",
            message: "The host ran out of memory while the attempt was running.",
            evidence: ["oom_kill 1 in /sys/fs/cgroup/memory.events"],
          }
        : null,
      steps: step === undefined || isBroken ? [] : [{ ...step, agent: ending }],
      usage: {
        ...plain.usage,
        inputTokens: 4000 + ((chance * 331) % 90_000),
        outputTokens: 200 + ((chance * 37) % 5000),
        costUsd: Math.round(chance * 1.7) / 10_000,
        toolCalls: chance % 40,
      },
      startedAt: new Date(startedAt).toISOString(),
      endedAt: new Date(startedAt + wallMs).toISOString(),
      files: files ? exampleFileNames : plain.files,
    });
    return files ? { result, files: exampleFiles(task) } : { result };
  });
  const names = [...new Set(attempts.map(({ result }) => result.task))];
  return {
    settings: { agent: "model", model: "example-1", attempts: 2, concurrency: 16, seed },
    tasks: names.map((name) => ({ name, tags: [name.replace(/^.*\/|-\d+$/g, "")] })),
    attempts,
  };
}
