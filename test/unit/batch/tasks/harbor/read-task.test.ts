import { chmod } from "node:fs/promises";
import { basename, join } from "node:path";
import { execa } from "execa";
import { describe, expect, it } from "vitest";
import { readHarborTask } from "../../../../../src/batch/tasks/harbor/read-task.js";
import { directoryWith } from "../../../../support/task-directories.js";
import { faultsOf, harborDirectory, plainFiles, readToml } from "./harbor-files.js";

/** In the style of the files of Terminal-Bench 2: an old name of the version, older keys, and some of its own. */
const terminalBench2 = `
version = "1.0"

[metadata]
author_name = "A. Author"
difficulty = "medium"
category = "file-operations"
tags = ["text", "sorting"]
expert_time_estimate_min = 20.0
created = 2025-11-03

[verifier]
timeout_sec = 900.0

[agent]
timeout_sec = 1800.0
[agent.kwargs]
max_turns = 60

[environment]
build_timeout_sec = 1200.0
docker_image = "registry.example/sorting:20251031"
cpus = 2
memory = "4G"
storage = "10G"
allow_internet = false
number_of_milestones = 0
`;

describe("a task with one step", () => {
  it("of the kind of Terminal-Bench 2 is read with everything that it says", async () => {
    const directory = await harborDirectory(terminalBench2, {
      "solution/solve.sh": "#!/bin/bash\nsort in > out\n",
      "environment/Dockerfile": undefined,
      "environment/data/in": "b\na\n",
    });
    const read = await readHarborTask(directory, { variables: {} });
    if (read.kind !== "task") throw new Error(JSON.stringify(read.faults));
    expect(read.task).toEqual({
      name: basename(directory),
      format: "harbor",
      source: directory,
      checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
      parts: {
        instruction: expect.any(String),
        environment: expect.any(String),
        tests: expect.any(String),
        solution: expect.any(String),
        settings: expect.any(String),
      },
      metadata: {
        author_name: "A. Author",
        difficulty: "medium",
        category: "file-operations",
        tags: ["text", "sorting"],
        expert_time_estimate_min: 20,
        created: "2025-11-03",
      },
      environment: {
        image: { kind: "reference", reference: "registry.example/sorting:20251031" },
        files: join(directory, "environment"),
        workdir: null,
        env: {},
        network: { mode: "no-network", allowedHosts: [] },
        limits: { cpus: 2, memoryMb: 4096, storageMb: 10_240 },
        healthcheck: null,
      },
      steps: [
        {
          name: null,
          instruction: plainFiles["instruction.md"],
          agent: { timeoutSec: 1800, user: null, network: null },
          files: null,
          setupScript: null,
          healthcheck: null,
          solution: { kind: "script", directory: join(directory, "solution"), script: "solve.sh", env: {} },
          artifacts: [],
          verifier: {
            mode: "shared",
            timeoutSec: 900,
            user: null,
            network: null,
            env: {},
            environment: null,
            check: { kind: "reward-files", directory: join(directory, "tests"), script: "test.sh" },
          },
          minRewards: null,
        },
      ],
      rewardStrategy: "mean",
      warnings: [
        "task.toml: agent.kwargs is unknown and left aside",
        "task.toml: environment.number_of_milestones is unknown and left aside",
      ],
    });
  });

  it("has no limits and no end where schema 1.4 says nothing, and older limits before that", async () => {
    const newest = await readToml({ schema_version: "1.4" });
    expect(newest.environment).toMatchObject({
      limits: { cpus: null, memoryMb: null, storageMb: null },
      network: { mode: "public", allowedHosts: [] },
    });
    expect(newest.steps[0]).toMatchObject({ agent: { timeoutSec: null }, verifier: { timeoutSec: 600 } });
    expect((await readToml({})).environment.limits.cpus).toBeNull();
    for (const version of [
      { schema_version: "1.0" },
      { schema_version: "1.1" },
      { schema_version: "1.2" },
      { schema_version: "1.3" },
      { version: "1.0" },
      { version: "2.0" },
    ])
      expect((await readToml(version)).environment.limits).toEqual({
        cpus: 1,
        memoryMb: 2048,
        storageMb: 10_240,
      });
  });

  it("is refused if its schema is newer than what brig knows", async () => {
    for (const version of ["1.5", "2.0", "latest"])
      expect(await faultsOf({ schema_version: version })).toEqual([
        `task.toml: schema_version: is "${version}", and brig reads 1.0 to 1.4`,
      ]);
  });

  it("is named by its package, and else by its directory", async () => {
    expect((await readToml({ task: { name: "org/sum-up.2" } })).name).toBe("org/sum-up.2");
    for (const name of ["org/../sum", "a/b/c", ".hidden", "org/.sum", "", "sp ace", "org/\u001b[1m"])
      expect(await faultsOf({ task: { name } }), name).toHaveLength(1);
  });

  it("keeps what it says about itself, with the keywords of the package as tags", async () => {
    const { metadata } = await readToml({
      task: { name: "org/sum", description: "Adds", keywords: ["math"], authors: [{ name: "A" }] },
      metadata: { score: Number.NaN },
      source: "https://example.com",
    });
    expect(metadata).toEqual({
      description: "Adds",
      authors: [{ name: "A" }],
      source: "https://example.com",
      tags: ["math"],
      score: "NaN",
    });
  });

  it("may have a healthcheck, with Harbor's defaults", async () => {
    const { environment } = await readToml({ environment: { healthcheck: { command: "true" } } });
    expect(environment.healthcheck).toEqual({
      command: "true",
      intervalSec: 5,
      timeoutSec: 30,
      startPeriodSec: 0,
      startIntervalSec: 5,
      retries: 3,
    });
  });

  it("may have users by name and by number", async () => {
    const { steps } = await readToml({ agent: { user: "dev" }, verifier: { user: 0 } });
    expect(steps[0]).toMatchObject({ agent: { user: "dev" }, verifier: { user: "0" } });
  });

  it.each<[string, Record<string, unknown>, string]>([
    [
      "text for a number",
      { agent: { timeout_sec: "60" } },
      'agent.timeout_sec: is "60" and must be a number',
    ],
    [
      "no end for an end",
      { agent: { timeout_sec: Number.POSITIVE_INFINITY } },
      "agent.timeout_sec: is Infinity and must be a number",
    ],
    [
      "a negative time",
      { verifier: { timeout_sec: -1 } },
      "verifier.timeout_sec: is -1 and must be more than 0",
    ],
    [
      "a fraction of a megabyte",
      { environment: { memory_mb: 0.5 } },
      "environment.memory_mb: is 0.5 and must be a whole number",
    ],
    ["a list for a table", { environment: [] }, "environment: is a list and must be a table"],
    [
      "a number in the environment",
      { environment: { env: { A: 1 } } },
      "environment.env.A: is 1 and must be text",
    ],
    [
      "a network that does not exist",
      { environment: { network_mode: "open" } },
      'environment.network_mode: is "open" and must be one of "public", "no-network", "allowlist"',
    ],
    [
      "a relative directory",
      { environment: { workdir: "app" } },
      'environment.workdir: is "app": it must be an absolute path',
    ],
    [
      "a user that is no user",
      { agent: { user: true } },
      "agent.user: is true: it must be the name or the number of a user",
    ],
    [
      "Windows",
      { environment: { os: "Windows" } },
      'environment.os: is "Windows", and brig runs Linux containers only',
    ],
    ["a GPU", { environment: { gpus: 1 } }, "environment.gpus: is 1, and brig gives no GPU to a container"],
    [
      "a TPU",
      { environment: { tpu: { type: "v5e", topology: "2x4" } } },
      "environment.tpu: is not supported",
    ],
    [
      "MCP servers",
      { environment: { mcp_servers: [{ name: "x", url: "http://x" }] } },
      "environment.mcp_servers: is not supported: the agent would lack their tools",
    ],
    [
      "skills",
      { environment: { skills_dir: "/skills" } },
      "environment.skills_dir: is not supported: the agent would lack the skills",
    ],
    [
      "collecting",
      { verifier: { collect: [{ command: "dump" }] } },
      "verifier.collect: is not supported: the verifier would lack what it collects",
    ],
  ])("is refused with file and field for %s", async (_, toml, fault) => {
    expect(await faultsOf(toml)).toEqual([`task.toml: ${fault}`]);
  });

  it("that asks for no GPU and no servers is not refused for saying so", async () => {
    const environment = { os: "LINUX", gpus: 0, gpu_types: [], mcp_servers: [] };
    expect(await faultsOf({ environment })).toEqual([]);
  });

  it("is refused with all its faults together", async () => {
    expect(
      await faultsOf(
        { environment: { gpus: 2, memory: "lots" } },
        { files: { "instruction.md": undefined, "tests/test.sh": undefined } },
      ),
    ).toEqual([
      "task.toml: environment.gpus: is 2, and brig gives no GPU to a container",
      'task.toml: environment.memory: is "lots" and must be a size such as 2G or 512M',
      "instruction.md: is missing",
      "tests/test.sh: is missing",
    ]);
  });

  it("is refused if its TOML cannot be read", async () => {
    expect(await faultsOf("[agent]\ntimeout_sec = \n")).toEqual([
      expect.stringMatching(/^task\.toml: line 2, column \d+: /),
    ]);
    expect(await faultsOf(`a = ${"[".repeat(5000)}`)).toHaveLength(1);
    expect(await faultsOf(`${"a.".repeat(5000)}a = 1`)).toEqual([
      "task.toml: is nested more than 48 levels deep",
    ]);
    expect(await faultsOf("x = 1\n", { files: { "task.toml": Buffer.from([0xff]) } })).toEqual([
      "task.toml: is not UTF-8 text: invalid utf-8 sequence of 1 bytes from index 0",
    ]);
  });

  it("is refused if its instruction is empty or 50 MB long", async () => {
    expect(await faultsOf({}, { files: { "instruction.md": " \n" } })).toEqual(["instruction.md: is empty"]);
    expect(await faultsOf({}, { files: { "instruction.md": Buffer.alloc(50e6, "x") } })).toEqual([
      "instruction.md: has 48 MiB, which is more than 1.0 MiB",
    ]);
  });

  it("shows no control characters of the file in its faults", async () => {
    const faults = await faultsOf({ environment: { memory: "\u001b]0;x\u0007", "a\u001b[31m": 1 } });
    expect(faults).toHaveLength(1);
    expect(faults.join("")).not.toMatch(/\p{Cc}/u);
  });

  it("is refused, and not waited for, if a FIFO takes the place of its files", {
    timeout: 30_000,
  }, async () => {
    const directory = await directoryWith({ "environment/Dockerfile": "FROM x", "tests/test.sh": "" });
    for (const name of ["task.toml", "instruction.md"]) await execa("mkfifo", [join(directory, name)]);
    const read = await readHarborTask(directory, { variables: {} });
    expect(read.kind === "faulty" && read.faults.map(({ file }) => file)).toEqual([
      "instruction.md",
      "task.toml",
      "task.toml",
    ]);
  });

  it("has a checksum of what matters for its outcome, and of nothing else", async () => {
    const checksums = async (files: Record<string, string>) => {
      const { checksum, parts } = await readToml({ agent: { timeout_sec: 1 } }, { files });
      return { checksum, parts };
    };
    const before = await checksums({});
    expect(await checksums({ "README.md": "about", "jobs/1/result.json": "{}" })).toEqual(before);
    const changed = await checksums({ "solution/solve.sh": "#!/bin/sh\n" });
    expect(changed.checksum).not.toBe(before.checksum);
    expect({ ...changed.parts, solution: before.parts.solution }).toEqual(before.parts);
  });

  it("has another checksum when its script is not executable any more", async () => {
    const directory = await harborDirectory({ task: { name: "a" } });
    const before = await readHarborTask(directory, { variables: {} });
    await chmod(join(directory, "tests/test.sh"), 0o644);
    const after = await readHarborTask(directory, { variables: {} });
    expect(
      before.kind === "task" && after.kind === "task" && before.task.checksum === after.task.checksum,
    ).toBe(false);
  });
});

describe("sizes", () => {
  it.each([
    ["2G", 2048],
    ["1.5g", 1536],
    ["512M", 512],
    ["2048K", 2],
  ])("%s are %d MB", async (memory, megabytes) => {
    expect((await readToml({ environment: { memory, storage: memory } })).environment.limits).toEqual({
      cpus: null,
      memoryMb: megabytes,
      storageMb: megabytes,
    });
  });

  it("may be given twice if they are the same", async () => {
    const limits = async (memory: string) => await faultsOf({ environment: { memory, memory_mb: 2048 } });
    expect(await limits("2G")).toEqual([]);
    expect(await limits("4G")).toEqual([
      'task.toml: environment.memory: is "4G", which is 4096 MB and contradicts memory_mb = 2048',
    ]);
  });

  it("are refused without a unit, since none is known for certain", async () => {
    expect(await faultsOf({ environment: { memory: "2048" } })).toHaveLength(1);
  });
});

describe("the network", () => {
  const networkOf = async (environment: Record<string, unknown>) =>
    (await readToml({ environment })).environment.network;

  it("is as the file says, in the newer and in the older way", async () => {
    expect(await networkOf({ network_mode: "no-network" })).toEqual({ mode: "no-network", allowedHosts: [] });
    expect(await networkOf({ allow_internet: false })).toEqual({ mode: "no-network", allowedHosts: [] });
    expect(await networkOf({ allow_internet: true })).toEqual({ mode: "public", allowedHosts: [] });
    expect(await networkOf({ network_mode: "allowlist" })).toEqual({ mode: "allowlist", allowedHosts: [] });
    expect(await networkOf({ allow_internet: false, allowed_hosts: ["a.example"] })).toEqual({
      mode: "allowlist",
      allowedHosts: ["a.example"],
    });
  });

  it("has hosts in one notation", async () => {
    const allowed_hosts = [
      "API.Example.com.",
      "*.pypi.org",
      ".pythonhosted.org",
      "10.0.0.0/8",
      "::1",
      "1.2.3.4",
      "api.example.com",
    ];
    expect((await networkOf({ network_mode: "allowlist", allowed_hosts })).allowedHosts).toEqual([
      "api.example.com",
      "*.pypi.org",
      "*.pythonhosted.org",
      "10.0.0.0/8",
      "::1",
      "1.2.3.4",
    ]);
  });

  it.each([
    "https://a.example",
    "a.example:443",
    "a.example/x",
    "[::1]",
    "a b",
    "",
    "*",
    "a.*.example",
    "1.2.3",
    "10.0.0.0/33",
    "x".repeat(64),
  ])("does not take %j for a host", async (host) => {
    expect(
      await faultsOf({ environment: { network_mode: "allowlist", allowed_hosts: [host] } }),
    ).toHaveLength(1);
  });

  it("may not be said in two ways that differ", async () => {
    expect(await faultsOf({ environment: { network_mode: "public", allow_internet: false } })).toEqual([
      'task.toml: environment.allow_internet: is false, which contradicts network_mode = "public"',
    ]);
    expect(await faultsOf({ environment: { network_mode: "public", allowed_hosts: ["a.example"] } })).toEqual(
      ['task.toml: environment.allowed_hosts: is only allowed with network_mode = "allowlist"'],
    );
  });

  it("of a phase is null where the environment's counts", async () => {
    const { steps } = await readToml({ agent: { network_mode: "no-network" } });
    expect(steps[0]).toMatchObject({
      agent: { network: { mode: "no-network", allowedHosts: [] } },
      verifier: { network: null },
    });
  });
});

const reference = (text: string) => `$\{${text}}`;

describe("variables", () => {
  it("are filled in where a value is one, from what is given", async () => {
    const env = {
      KEY: reference("KEY"),
      HOST: reference("HOST:-localhost"),
      EMPTY: reference("EMPTY:-"),
      TEXT: `a ${reference("KEY")} b`,
      COST: "$5",
    };
    const { environment, warnings } = await readToml(
      { environment: { env } },
      { variables: { KEY: "k", EMPTY: "" } },
    );
    expect(environment.env).toEqual({
      KEY: "k",
      HOST: "localhost",
      EMPTY: "",
      TEXT: `a ${reference("KEY")} b`,
      COST: "$5",
    });
    expect(warnings).toEqual(["environment.env.KEY is the variable KEY of this machine"]);
  });

  it("that are missing are named, with the field", async () => {
    expect(await faultsOf({ verifier: { env: { TOKEN: reference("JUDGE_TOKEN") } } })).toEqual([
      "task.toml: verifier.env.TOKEN: asks for the variable JUDGE_TOKEN, which is not set",
    ]);
    // Inherited properties of objects are no variables.
    expect(await faultsOf({ verifier: { env: { TOKEN: reference("toString") } } })).toHaveLength(1);
  });
});

describe("artifacts", () => {
  it("are paths, or tables with a destination and exceptions", async () => {
    const artifacts = ["/app/out", { source: "data", destination: "kept/data", exclude: ["*.pyc"] }];
    expect((await readToml({ artifacts })).steps[0]?.artifacts).toEqual([
      { source: "/app/out", destination: null, exclude: [] },
      { source: "data", destination: "kept/data", exclude: ["*.pyc"] },
    ]);
  });

  it.each([
    ["a source that leads up", "/app/../etc", 'the source "/app/../etc" must be a path without ".."'],
    ["an empty source", "", 'the source "" must be a path without ".."'],
    [
      "an absolute destination",
      { source: "/a", destination: "/b" },
      'the destination "/b" must be a relative path without ".."',
    ],
    [
      "a destination that leads up",
      { source: "/a", destination: "b/../../c" },
      'the destination "b/../../c" must be a relative path without ".."',
    ],
    [
      "the manifest",
      { source: "/a", destination: "./manifest.json" },
      "the destination manifest.json is reserved",
    ],
    ["another service", { source: "/a", service: "db" }, 'is of the service "db", and brig runs only "main"'],
  ])("may not have %s", async (_, artifact, problem) => {
    expect(await faultsOf({ artifacts: [artifact] })).toEqual([`task.toml: artifacts: ${problem}`]);
  });
});
