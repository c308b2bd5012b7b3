import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readHarborTask } from "../../../../../src/batch/tasks/harbor/read-task.js";
import { faultsOf, harborDirectory, plainFiles, readToml } from "./harbor-files.js";

const twoSteps = {
  "instruction.md": undefined,
  "tests/test.sh": undefined,
  "steps/build/instruction.md": "Build it.",
  "steps/build/tests/test.sh": "#!/bin/sh\n",
  "steps/build/solution/solve.sh": "#!/bin/sh\n",
  "steps/ship/instruction.md": "Ship it.",
  "steps/ship/tests/test.sh": "#!/bin/sh\n",
  "steps/ship/workdir/setup.sh": "#!/bin/sh\n",
  "steps/ship/workdir/notes.txt": "n",
};

describe("a task with several steps", () => {
  it("has its steps in the order of the file, and takes over what a step does not say", async () => {
    const directory = await harborDirectory(
      `
schema_version = "1.3"
multi_step_reward_strategy = "final"
artifacts = ["/app/out"]
[agent]
timeout_sec = 100.0
user = "dev"
[verifier]
timeout_sec = 50.0
env = { LEVEL = "1", NAME = "task" }
[[steps]]
name = "build"
min_reward = 0.5
[[steps]]
name = "ship"
min_reward = { reward = 1.0, style = 0.2 }
artifacts = [{ source = "log", destination = "logs" }]
[steps.agent]
timeout_sec = 7.0
[steps.verifier]
timeout_sec = 8.0
env = { NAME = "step" }
[steps.healthcheck]
command = "test -e /app"
`,
      twoSteps,
    );
    const read = await readHarborTask(directory, { variables: {} });
    if (read.kind !== "task") throw new Error(JSON.stringify(read.faults));
    const [build, ship, ...more] = read.task.steps;
    expect(more).toEqual([]);
    expect(read.task.rewardStrategy).toBe("final");
    expect(build).toEqual({
      name: "build",
      instruction: "Build it.",
      agent: { timeoutSec: 100, user: "dev", network: null },
      files: null,
      setupScript: null,
      healthcheck: null,
      solution: {
        kind: "script",
        directory: join(directory, "steps/build/solution"),
        script: "solve.sh",
        env: {},
      },
      artifacts: [{ source: "/app/out", destination: null, exclude: [] }],
      verifier: {
        mode: "shared",
        timeoutSec: 50,
        user: null,
        network: null,
        env: { LEVEL: "1", NAME: "task" },
        environment: null,
        check: { kind: "reward-files", directory: join(directory, "steps/build/tests"), script: "test.sh" },
      },
      minRewards: { reward: 0.5 },
    });
    expect(ship).toMatchObject({
      agent: { timeoutSec: 7, user: "dev" },
      files: join(directory, "steps/ship/workdir"),
      setupScript: "setup.sh",
      healthcheck: { command: "test -e /app", retries: 3 },
      solution: null,
      artifacts: [{ source: "/app/out" }, { source: "log", destination: "logs" }],
      verifier: { timeoutSec: 8, env: { LEVEL: "1", NAME: "step" } },
      minRewards: { reward: 1, style: 0.2 },
    });
  });

  const steps = [{ name: "build" }, { name: "ship" }];

  it("may have the same tests for all steps, or tests for each", async () => {
    const same = {
      ...twoSteps,
      ...plainFiles,
      "steps/build/tests/test.sh": undefined,
      "steps/ship/tests/test.sh": undefined,
    };
    const task = await readToml({ steps }, { files: same });
    for (const { verifier } of task.steps)
      expect(verifier.check).toMatchObject({ directory: join(task.source, "tests") });
  });

  it("may have both, and then a step's own tests come over those of all", async () => {
    const both = {
      ...twoSteps,
      "tests/common.py": "",
      "tests/test.sh": "#!/bin/sh\n",
      "steps/ship/tests/test.sh": undefined,
      "steps/ship/tests/data": "1",
    };
    const { source, steps: read } = await readToml({ steps }, { files: both });
    expect(read.map(({ verifier }) => verifier.check)).toEqual(
      ["build", "ship"].map((name) => ({
        kind: "reward-files",
        directory: join(source, `steps/${name}/tests`),
        script: "test.sh",
        base: join(source, "tests"),
      })),
    );
  });

  it("has a separate verifier where it gives one an environment, whatever the task says of all steps", async () => {
    const environment = { docker_image: "grader:1" };
    const given = [{ name: "build", verifier: { environment } }, { name: "ship" }];
    const { steps: read } = await readToml(
      { verifier: { environment_mode: "shared" }, steps: given },
      { files: twoSteps },
    );
    expect(read.map(({ verifier }) => [verifier.mode, verifier.environment?.image])).toEqual([
      ["separate", { kind: "reference", reference: "grader:1" }],
      ["shared", undefined],
    ]);
    const shared = [{ name: "build", verifier: { environment_mode: "shared" } }, { name: "ship" }];
    const other = await readToml({ verifier: { environment }, steps: shared }, { files: twoSteps });
    expect(other.steps.map(({ verifier }) => verifier.mode)).toEqual(["shared", "separate"]);
    const both = [{ name: "build", verifier: { environment_mode: "shared", environment } }];
    expect(await faultsOf({ steps: both }, { files: twoSteps })).toEqual([
      'task.toml: steps[0].verifier.environment: contradicts environment_mode = "shared"',
    ]);
  });

  it("may have spaces in its name", async () => {
    const files = {
      ...twoSteps,
      "steps/ship it/instruction.md": "x",
      "steps/ship it/tests/test.sh": "#!/bin/sh\n",
    };
    const { steps: read } = await readToml({ steps: [{ name: "ship it" }] }, { files });
    expect(read.map(({ name }) => name)).toEqual(["ship it"]);
    expect(await faultsOf({ steps: [{ name: "ship it " }] }, { files })).toHaveLength(1);
  });

  it("needs its own tests in the image that is built for its verifier", async () => {
    const files = { ...twoSteps, "tests/Dockerfile": "FROM debian:12\n" };
    expect(await faultsOf({ verifier: { environment_mode: "separate" }, steps }, { files })).toEqual(
      ["build", "ship"].map(
        (name) =>
          `steps/${name}/tests: would be missing in the image of the verifier, which is built from tests`,
      ),
    );
  });

  it("is refused, with the step, for what is missing or wrong", async () => {
    expect(await faultsOf({ steps: [...steps, { name: "third" }] }, { files: twoSteps })).toEqual([
      "steps/third/instruction.md: is missing",
      "tests/test.sh: is missing",
    ]);
    expect(await faultsOf({ steps: [{ name: "build", agent: { user: -1 } }] }, { files: twoSteps })).toEqual([
      "task.toml: steps[0].agent.user: is -1 and must be at least 0",
    ]);
    for (const name of ["../build", "a/b", "", ".."])
      expect(await faultsOf({ steps: [{ name }] }, { files: twoSteps }), name).toHaveLength(1);
    expect(await faultsOf({ steps: [{ name: "build" }, { name: "build" }] }, { files: twoSteps })).toEqual([
      'task.toml: steps: has two steps with the name "build"',
    ]);
  });

  it("has parts of which each step's files are one", async () => {
    const before = await readToml({ steps }, { files: twoSteps });
    const after = await readToml(
      { steps },
      { files: { ...twoSteps, "steps/ship/workdir/notes.txt": "other" } },
    );
    expect({ ...after.parts, environment: "" }).toEqual({ ...before.parts, environment: "" });
    expect(after.parts.environment).not.toBe(before.parts.environment);
  });
});

describe("the verifier", () => {
  const verifierOf = async (
    toml: Record<string, unknown>,
    files: Record<string, string | undefined> = {},
  ) => {
    const task = await readToml(toml, { files });
    return { task, verifier: task.steps[0]!.verifier };
  };

  it("is shared unless the file says otherwise or gives it an environment", async () => {
    expect((await verifierOf({})).verifier.mode).toBe("shared");
    expect((await verifierOf({ verifier: { environment_mode: "separate" } })).verifier.mode).toBe("separate");
    expect((await verifierOf({ verifier: { environment: {} } })).verifier.mode).toBe("separate");
  });

  it("gets the task's own environment and the tests if it is only separate", async () => {
    const { verifier, task } = await verifierOf({ verifier: { environment_mode: "separate" } });
    expect(verifier.environment).toBeNull();
    expect(verifier.check).toEqual({
      kind: "reward-files",
      directory: join(task.source, "tests"),
      script: "test.sh",
    });
  });

  it("may have settings of its own for the task's own image", async () => {
    const { verifier, task } = await verifierOf({
      environment: { cpus: 1, network_mode: "public" },
      verifier: { environment: { cpus: 4, network_mode: "no-network" } },
    });
    expect(verifier.environment).toMatchObject({
      image: task.environment.image,
      limits: { cpus: 4 },
      network: { mode: "no-network" },
    });
    expect(verifier.check).toMatchObject({ directory: join(task.source, "tests") });
  });

  it("may have an image of its own that contains the tests", async () => {
    const { verifier, task } = await verifierOf(
      { environment: { docker_image: "agent:1", cpus: 2 }, verifier: { environment_mode: "separate" } },
      {
        "tests/Dockerfile": "FROM agent:1\nCOPY . /tests\n",
        "tests/test.sh": undefined,
        "tests/grade.sh": "",
      },
    );
    expect(verifier.environment).toMatchObject({
      image: { kind: "build", context: join(task.source, "tests"), dockerfile: "Dockerfile" },
      limits: { cpus: 2 },
      files: null,
    });
    expect(verifier.check).toEqual({ kind: "reward-files", directory: null, script: "test.sh" });
  });

  it("gets the tests if its image is one that was built elsewhere, unless there are none", async () => {
    const toml = { verifier: { environment: { docker_image: "grader:1" } } };
    const given = await verifierOf(toml);
    expect(given.verifier.environment).toMatchObject({ image: { reference: "grader:1" }, files: null });
    expect(given.verifier.check).toMatchObject({ directory: join(given.task.source, "tests") });
    const inside = await verifierOf(toml, { "tests/test.sh": undefined });
    expect(inside.verifier.check).toMatchObject({ directory: null });
  });

  it("may have a network of its own while it runs, separate or not", async () => {
    for (const environment_mode of ["shared", "separate"])
      expect(
        (
          await verifierOf({
            environment: { network_mode: "public" },
            verifier: { environment_mode, network_mode: "no-network" },
          })
        ).verifier.network,
      ).toEqual({ mode: "no-network", allowedHosts: [] });
  });

  it("may not be said to be both", async () => {
    expect(await faultsOf({ verifier: { environment_mode: "shared", environment: {} } })).toEqual([
      'task.toml: verifier.environment: contradicts environment_mode = "shared"',
    ]);
  });

  it("is refused with the field for what its environment asks for", async () => {
    expect(await faultsOf({ verifier: { environment: { gpus: 1 } } })).toEqual([
      "task.toml: verifier.environment.gpus: is 1, and brig gives no GPU to a container",
    ]);
  });

  it("cannot be a batch file of Windows", async () => {
    expect(await faultsOf({}, { files: { "tests/test.sh": undefined, "tests/test.bat": "" } })).toEqual([
      "tests/test.sh: is missing, and brig cannot run test.bat",
    ]);
  });
});
