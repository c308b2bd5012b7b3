import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { examineTasks } from "../../../../../src/batch/tasks/read-tasks.js";
import { directoryWith, type Files } from "../../../../support/task-directories.js";

async function read(name: string, content: string | Buffer, files: Files = {}, variables = {}) {
  const root = await directoryWith({ ...files, [name]: content });
  const { tasks, faults } = await examineTasks([join(root, name)], { cwd: "/", variables });
  return {
    root,
    tasks,
    faults: faults.map(({ source, field, problem }) =>
      [source.replace(`${root}/`, ""), field, problem].filter(Boolean).join(" "),
    ),
  };
}

const rows = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join("");
const small = { prompt: "Fix it.", check: "make test" };

describe("a row", () => {
  it("becomes a task whose check gets what the agent left, in a fresh container", async () => {
    const { root, tasks, faults } = await read("math.jsonl", rows(small));
    const environment = {
      image: { kind: "reference", reference: "brig/base" },
      files: null,
      workdir: "/workspace",
      env: {},
      network: { mode: "no-network", allowedHosts: [] },
      limits: { cpus: null, memoryMb: null, storageMb: null },
      healthcheck: null,
    };
    expect(faults).toEqual([]);
    expect(tasks).toEqual([
      {
        name: "math-1",
        format: "plain",
        source: `${root}/math.jsonl:1`,
        checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
        parts: expect.any(Object),
        metadata: { tags: [] },
        environment,
        steps: [
          {
            name: null,
            instruction: "Fix it.",
            agent: { timeoutSec: null, user: null, network: null },
            files: null,
            setupScript: null,
            healthcheck: null,
            solution: null,
            artifacts: [{ source: "/workspace", destination: null, exclude: [] }],
            verifier: {
              mode: "separate",
              timeoutSec: 600,
              user: null,
              network: null,
              env: {},
              environment,
              check: { kind: "command", command: "make test" },
            },
            minRewards: null,
          },
        ],
        rewardStrategy: "mean",
        warnings: [],
      },
    ]);
  });

  const full = {
    ...small,
    name: "org/one",
    workspace: "repo",
    image: "python:3.12",
    timeout_sec: 60,
    env: { A: "1" },
    network: "allowlist:PyPI.org,*.example.com",
    workdir: "/srv",
    tags: ["easy", "c"],
  };
  const csv = `prompt,check,name,workspace,image,timeout_sec,env,network,workdir,tags
Fix it.,make test,org/one,repo,python:3.12,60,"{""A"":""1""}","allowlist:PyPI.org,*.example.com",/srv,"easy, c"
`;
  const yaml = `- prompt: Fix it.
  check: make test
  name: org/one
  workspace: repo
  image: python:3.12
  timeout_sec: 60
  env: { A: "1" }
  network: allowlist:PyPI.org,*.example.com
  workdir: /srv
  tags: [easy, c]
`;

  it.each([
    ["rows.jsonl", rows(full), 1],
    ["rows.csv", csv, 2],
    ["rows.yaml", yaml, 1],
    ["rows.YML", yaml, 1],
  ])("says the same in %s", async (name, content, line) => {
    const { root, tasks, faults } = await read(name, content, { "repo/a.c": "int a;" });
    expect(faults).toEqual([]);
    expect(tasks).toMatchObject([
      {
        name: "org/one",
        source: `${root}/${name}:${line}`,
        metadata: { tags: ["easy", "c"] },
        environment: {
          image: { reference: "python:3.12" },
          files: join(root, "repo"),
          workdir: "/srv",
          env: { A: "1" },
          network: { mode: "allowlist", allowedHosts: ["pypi.org", "*.example.com"] },
        },
        steps: [{ agent: { timeoutSec: 60 }, artifacts: [{ source: "/srv" }] }],
      },
    ]);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["no prompt", { prompt: undefined }, "prompt is missing: it must be text"],
    ["an empty prompt", { prompt: " " }, 'prompt is " ": it must not be empty'],
    ["no check", { check: undefined }, "check is missing: it must be text"],
    ["a key with a typo", { timeout: 5 }, 'has the unknown key "timeout"'],
    [
      "a name that is no name",
      { name: "a b" },
      'name is "a b": a name consists of letters, digits and ._- with at most one /, as in org/name',
    ],
    [
      "the root as its directory",
      { workdir: "/" },
      'workdir is "/": it must be an absolute path other than /',
    ],
    [
      "another network",
      { network: "public" },
      'network is "public": it must be none, full or allowlist:HOST,…',
    ],
    ["a host that is none", { network: "allowlist:http://x" }, 'network.allowed_hosts "http://x" is no host'],
    [
      "a variable that is not set",
      { env: { A: `$\{NONE}` } },
      "env.A asks for the variable NONE, which is not set",
    ],
    ["no time", { timeout_sec: 0 }, "timeout_sec is 0 and must be more than 0"],
  ])("is refused by its line for %s", async (_, change, fault) => {
    const { tasks, faults } = await read("a.jsonl", rows(small, { ...small, ...change }, small));
    expect(faults).toEqual([`a.jsonl:2 ${fault}`]);
    expect(tasks.map(({ name }) => name)).toEqual(["a-1", "a-3"]);
  });

  it("is refused if its workspace is missing or has links that lead out", async () => {
    const root = await directoryWith({
      "repo/a": "",
      "t.jsonl": rows({ ...small, workspace: "repo" }, { ...small, workspace: "none" }),
    });
    await symlink("/etc", join(root, "repo/etc"));
    const { faults } = await examineTasks(["t.jsonl"], { cwd: root, variables: {} });
    expect(faults.map(({ field, problem }) => [field, problem])).toEqual([
      ["workspace", '"etc" is a symbolic link to "/etc", which is outside of the task'],
      ["workspace", `${JSON.stringify(join(root, "none"))}: no such file or directory`],
    ]);
  });

  it("has a checksum that changes with each part", async () => {
    const parts = async (change: Record<string, unknown>, content = "1") => {
      const { tasks, faults } = await read("a.jsonl", rows({ ...small, workspace: "w", ...change }), {
        "w/f": content,
      });
      expect(faults).toEqual([]);
      return tasks[0]!.parts;
    };
    const before = await parts({});
    expect(await parts({ name: "renamed", tags: ["x"] })).toEqual(before);
    const changed = async (change: Record<string, unknown>, content?: string) => {
      const after = await parts(change, content);
      return Object.entries(after).flatMap(([part, hash]) => (hash === Object(before)[part] ? [] : [part]));
    };
    expect(await changed({ prompt: "Other" })).toEqual(["instruction"]);
    expect(await changed({ check: "false" })).toEqual(["tests"]);
    expect(await changed({ timeout_sec: 1 })).toEqual(["settings"]);
    expect(await changed({ image: "x" })).toEqual(["environment"]);
    expect(await changed({}, "2")).toEqual(["environment"]);
  });
});

describe("a file of rows", () => {
  it("may have blank lines, a byte order mark and line breaks of Windows", async () => {
    const json = await read("a.jsonl", `\ufeff${JSON.stringify(small)}\r\n\r\n${JSON.stringify(small)}\r\n`);
    expect(json.faults).toEqual([]);
    expect(json.tasks.map(({ source }) => source.at(-1))).toEqual(["1", "3"]);
    const csv = await read("a.csv", '\ufeffprompt,check\r\n"Two\r\nlines",true\r\n');
    expect(csv.faults).toEqual([]);
    expect(csv.tasks[0]?.steps[0]?.instruction).toBe("Two\r\nlines");
  });

  it.each([
    [
      "a.jsonl",
      "{}\nnot json\n",
      [
        "a.jsonl:2 is not valid JSON",
        "a.jsonl:1 prompt is missing: it must be text",
        "a.jsonl:1 check is missing: it must be text",
      ],
    ],
    ["a.jsonl", "[]\n", ["a.jsonl:1 is a list and must be a table"]],
    ["a.jsonl", `${"[".repeat(300)}${"]".repeat(300)}\n`, ["a.jsonl:1 is nested too deeply"]],
    ["a.jsonl", "\n", ["a.jsonl has no tasks"]],
    ["a.yaml", "prompt: x\n", ["a.yaml:1 must be a list of tasks"]],
    ["a.yaml", "- prompt: x\n  check: y\n- {\n", [expect.stringMatching(/^a\.yaml:\d+ /)]],
    ["a.csv", "prompt,check\na,b,c\n", [expect.stringMatching(/^a\.csv:2 Invalid Record Length/)]],
    ["a.csv", 'prompt,check\n"a,b\n', [expect.stringMatching(/^a\.csv:\d Quote Not Closed/)]],
    [
      "a.csv",
      "prompt,check,env,timeout_sec\na,b,A=1,soon\n",
      ['a.csv:2 timeout_sec is "soon" and must be a number', 'a.csv:2 env is "A=1" and must be a table'],
    ],
    ["a.jsonl", Buffer.from([0xff, 0x0a]), ["a.jsonl is not UTF-8 text"]],
  ])("%s with %j is refused with what is wrong", async (name, content, expected) => {
    expect((await read(name, content)).faults).toEqual(expected);
  });
});
