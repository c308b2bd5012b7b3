import { symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { examineTasks } from "../../../../../src/batch/tasks/read-tasks.js";
import type { Task } from "../../../../../src/batch/tasks/task.js";
import { readTerminalBenchTask } from "../../../../../src/batch/tasks/terminal-bench.js";
import { directoryWith, type Files, writeFiles } from "../../../../support/task-directories.js";

/** In the style of the published ones. */
const taskYaml = `
instruction: |-
  Sort the lines of /app/in.txt into /app/out.txt.
author_name: A. Author
author_email: author@example.org
difficulty: easy
category: file-operations
tags:
  - text
parser_name: pytest
max_agent_timeout_sec: 180.0
max_test_timeout_sec: 30.0
run_tests_in_same_shell: false
disable_asciinema: true
expert_time_estimate_min: 5
`;

const compose = `
services:
  client:
    build:
      dockerfile: Dockerfile
    image: \${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: \${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: [ "sh", "-c", "sleep infinity" ]
    environment:
      - TEST_DIR=\${T_BENCH_TEST_DIR}
    volumes:
      - \${T_BENCH_TASK_LOGS_PATH}:\${T_BENCH_CONTAINER_LOGS_PATH}
      - \${T_BENCH_TASK_AGENT_LOGS_PATH}:\${T_BENCH_CONTAINER_AGENT_LOGS_PATH}
`;

const files: Files = {
  "task.yaml": taskYaml,
  Dockerfile: "FROM debian:12\nWORKDIR /app\nCOPY in.txt .\n",
  "docker-compose.yaml": compose,
  "in.txt": "b\na\n",
  "run-tests.sh": "#!/bin/bash\npytest $TEST_DIR/test_outputs.py -rA\n",
  "tests/test_outputs.py": "def test_sorted(): assert open('/app/out.txt').read() == 'a\\nb\\n'\n",
  "solution.sh": "#!/bin/bash\nsort in.txt > out.txt\n",
};

async function read(changes: Readonly<Record<string, string | null | undefined>> = {}) {
  const directory = await directoryWith({});
  await writeFiles(
    directory,
    Object.fromEntries(
      Object.entries({ ...files, ...changes }).filter(([, text]) => text !== undefined),
    ) as Files,
  );
  return { directory, read: await readTerminalBenchTask(directory, { variables: {} }) };
}

async function taskOf(changes: Parameters<typeof read>[0] = {}): Promise<Task> {
  const { read: result } = await read(changes);
  if (result.kind === "task") return result.task;
  throw new Error(JSON.stringify(result.faults));
}

async function faultsOf(changes: Parameters<typeof read>[0]): Promise<string[]> {
  const { read: result } = await read(changes);
  if (result.kind === "task") return [];
  return result.faults.map(({ file, field, problem }) => [file, field, problem].filter(Boolean).join(": "));
}

describe("a directory of Terminal-Bench 1", () => {
  it("is read with everything that it says", async () => {
    const { directory, read: result } = await read();
    expect(result).toEqual({
      kind: "task",
      task: {
        name: basename(directory),
        format: "terminal-bench",
        source: directory,
        checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
        parts: expect.any(Object),
        metadata: {
          author_name: "A. Author",
          author_email: "author@example.org",
          difficulty: "easy",
          category: "file-operations",
          tags: ["text"],
          expert_time_estimate_min: 5,
        },
        environment: {
          image: {
            kind: "build",
            context: directory,
            dockerfile: "Dockerfile",
            buildArgs: {},
            timeoutSec: 600,
          },
          files: null,
          workdir: null,
          env: { TEST_DIR: "/tests" },
          network: { mode: "public", allowedHosts: [] },
          limits: { cpus: null, memoryMb: null, storageMb: null },
          healthcheck: null,
        },
        steps: [
          {
            name: null,
            instruction: "Sort the lines of /app/in.txt into /app/out.txt.",
            agent: { timeoutSec: 180, user: null, network: null },
            files: null,
            setupScript: null,
            healthcheck: null,
            solution: { kind: "commands", commands: ["#!/bin/bash\nsort in.txt > out.txt\n"] },
            artifacts: [],
            verifier: {
              mode: "shared",
              timeoutSec: 30,
              user: "root",
              network: null,
              env: { TEST_DIR: "/tests" },
              environment: null,
              check: {
                kind: "parsed-output",
                directory: join(directory, "tests"),
                script: join(directory, "run-tests.sh"),
                parser: "pytest",
              },
            },
            minRewards: null,
          },
        ],
        rewardStrategy: "mean",
        warnings: [],
      },
    });
  });

  it("may say next to nothing, and have no Compose file, tests or solution", async () => {
    const task = await taskOf({
      "task.yaml": "instruction: Do it.\ndifficulty: easy\n",
      "docker-compose.yaml": undefined,
      "tests/test_outputs.py": undefined,
      "solution.sh": undefined,
    });
    expect(task.environment).toMatchObject({ image: { kind: "build", dockerfile: "Dockerfile" }, env: {} });
    const [step] = task.steps;
    expect(step).toMatchObject({ agent: { timeoutSec: 360 }, solution: null });
    expect(step?.verifier).toMatchObject({ timeoutSec: 60, check: { directory: null, parser: "pytest" } });
  });

  it("may have the limits, the user and the directory of its Compose file", async () => {
    const task = await taskOf({
      "docker-compose.yaml": `${compose}    cpus: 2\n    mem_limit: 1g\n    user: "1000"\n    working_dir: /data\n`,
    });
    expect(task.environment).toMatchObject({ workdir: "/data", limits: { cpus: 2, memoryMb: 1024 } });
    expect(task.steps[0]?.agent.user).toBe("1000");
    expect(task.steps[0]?.verifier.user).toBe("root");
  });

  it("warns of what it leaves aside", async () => {
    const { warnings } = await taskOf({
      "task.yaml": `${taskYaml.replace("same_shell: false", "same_shell: true")}parser_results_f2p: []\n`,
    });
    expect(warnings).toEqual([
      "task.yaml: parser_results_f2p is unknown and left aside",
      expect.stringContaining("run_tests_in_same_shell is left aside"),
    ]);
  });
});

describe("the parts of a directory", () => {
  it.each([
    ["task.yaml", "settings"],
    ["in.txt", "environment"],
    ["docker-compose.yaml", "environment"],
    ["run-tests.sh", "tests"],
    ["tests/test_outputs.py", "tests"],
    ["solution.sh", "solution"],
  ])("a change of %s is one of the part %s", async (file, part) => {
    const [before, after] = [await taskOf(), await taskOf({ [file]: `${files[file]}\n# changed\n` })];
    const changed = Object.keys(before.parts).filter(
      (name) => before.parts[name as keyof Task["parts"]] !== after.parts[name as keyof Task["parts"]],
    );
    expect(changed).toEqual([part]);
    expect(after.checksum).not.toBe(before.checksum);
  });
});

describe("solution.yaml", () => {
  const solution = async (yaml: string) => {
    const task = await taskOf({ "solution.sh": undefined, "solution.yaml": yaml });
    return { solution: task.steps[0]?.solution, warnings: task.warnings };
  };

  it("is a list of commands for one shell", async () => {
    const yaml =
      "- command: cd /app\n  min_timeout_sec: 1\n- command: sort in.txt > out.txt\n  block: true\n";
    expect(await solution(yaml)).toEqual({
      solution: { kind: "commands", commands: ["cd /app\nsort in.txt > out.txt"] },
      warnings: [],
    });
  });

  it.each(["block: false", "append_enter: false"])("that types keys (%s) cannot be run", async (key) => {
    expect(await solution(`- command: vim in.txt\n  ${key}\n`)).toEqual({
      solution: null,
      warnings: [expect.stringContaining("types keys")],
    });
  });

  it("is left aside beside a solution.sh, and so is a solution that is too long for a command", async () => {
    const task = await taskOf({ "solution.yaml": "not: a list" });
    expect(task.steps[0]?.solution).toMatchObject({ commands: [files["solution.sh"]] });
    const long = await taskOf({ "solution.sh": `#!/bin/bash\n# ${"x".repeat(121 * 1024)}` });
    expect(long.steps[0]?.solution).toBeNull();
    expect(long.warnings).toEqual([expect.stringContaining("solution.sh: it has more than")]);
  });
});

describe("what is refused, by file and field", () => {
  it.each<[string, Parameters<typeof read>[0], string]>([
    ["no instruction", { "task.yaml": "difficulty: easy" }, "task.yaml: instruction: is missing"],
    ["an empty instruction", { "task.yaml": "instruction: ' '" }, "task.yaml: instruction: is"],
    [
      "a wrong type",
      { "task.yaml": "instruction: x\nmax_agent_timeout_sec: long" },
      "task.yaml: max_agent_timeout_sec",
    ],
    ["a list", { "task.yaml": "- a" }, "task.yaml: is a list"],
    ["YAML that is none", { "task.yaml": "a: [" }, "task.yaml: "],
    [
      "another parser",
      { "task.yaml": `${taskYaml.replace("name: pytest", "name: swelancer")}` },
      'task.yaml: parser_name: is "swelancer"',
    ],
    ["no script", { "run-tests.sh": undefined }, "run-tests.sh: is missing"],
    ["no image", { "docker-compose.yaml": undefined, Dockerfile: undefined }, "has no image"],
    [
      "another service",
      { "docker-compose.yaml": "services:\n  web:\n    image: x\n" },
      "docker-compose.yaml: has",
    ],
    [
      "two services",
      { "docker-compose.yaml": `${compose}  db:\n    image: postgres\n` },
      'docker-compose.yaml: has the services "db"',
    ],
    [
      "privileges",
      { "docker-compose.yaml": `${compose}    privileged: true\n` },
      "docker-compose.yaml: privileged",
    ],
    [
      "capabilities",
      { "docker-compose.yaml": `${compose}    cap_add: [NET_ADMIN]\n` },
      "docker-compose.yaml: cap_add",
    ],
    [
      "ports",
      { "docker-compose.yaml": `${compose}    ports: ["8000:8000"]\n` },
      "docker-compose.yaml: ports",
    ],
    [
      "a directory of the host",
      { "docker-compose.yaml": `${compose}      - /etc:/host\n` },
      "docker-compose.yaml: volumes",
    ],
    [
      "a variable",
      { "docker-compose.yaml": compose.replace("T_BENCH_TEST_DIR", "SECRET") },
      "docker-compose.yaml: asks for the variable SECRET",
    ],
    [
      "a solution that is none",
      { "solution.sh": undefined, "solution.yaml": "command: x" },
      "solution.yaml: is a table",
    ],
  ])("%s", async (_, changes, fault) => {
    expect(await faultsOf(changes)).toEqual([expect.stringContaining(fault)]);
  });

  it("a link that leads out of the directory", async () => {
    const directory = await directoryWith(files);
    await symlink("/etc/passwd", join(directory, "tests", "expected"));
    const result = await readTerminalBenchTask(directory, { variables: {} });
    expect(result).toMatchObject({ kind: "faulty", faults: [{ file: "tests/expected" }] });
  });
});

it("a directory of the task that its Compose file mounts is copied, without what the agent must not see", async () => {
  const mounting = compose.replace(
    "volumes:",
    `volumes:\n      - ./:/app\n      - ./in.txt:/$\{COMPOSE_PROJECT_NAME}`,
  );
  const { directory, read: found } = await read({
    "docker-compose.yaml": mounting,
    "docker-compose.yml": "x",
  });
  if (found.kind !== "task") throw new Error(JSON.stringify(found.faults));
  const { copies = [] } = found.task.environment;
  expect(copies).toMatchObject([
    { source: directory, target: "/app", isReadOnly: false },
    { source: join(directory, "in.txt"), target: expect.stringMatching(/^\/tb__.+__client$/) },
  ]);
  expect(copies[0]?.exclude.toSorted()).toEqual([
    "run-tests.sh",
    "solution.sh",
    "tests",
    "tests/test_outputs.py",
  ]);
});

it("readTasks finds such directories by their task.yaml", async () => {
  const root = await directoryWith(
    Object.fromEntries(Object.entries(files).map(([path, text]) => [`tasks/sort/${path}`, text])),
  );
  const { tasks, faults } = await examineTasks([root], { cwd: root, variables: {} });
  expect({ names: tasks.map(({ name }) => name), faults }).toEqual({ names: ["sort"], faults: [] });
});
