import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { examineTasks } from "../../../../../src/batch/tasks/read-tasks.js";
import type { Task } from "../../../../../src/batch/tasks/task.js";
import { directoryWith, type Files } from "../../../../support/task-directories.js";

const patch = "diff --git a/a.py b/a.py\r\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\r\n+b\r\n";
const evalScript = [
  "#!/bin/bash",
  "set -uxo pipefail",
  "cd /testbed",
  "git apply -v - <<'EOF_114329324912'",
  "EOF_114329324912",
  ": '>>>>> Start Test Output'",
  "pytest -rA tests/test_a.py",
  ": '>>>>> End Test Output'",
  "git checkout abc1234 tests/test_a.py",
  "",
].join("\n");

const row = {
  instance_id: "astropy__astropy-12907",
  repo: "astropy/astropy",
  base_commit: "d16bfe05a744909de4b27f5875fe0d4ed41ce607",
  patch,
  test_patch: "diff",
  problem_statement: "Nested models give the wrong matrix.\r\n",
  hints_text: "",
  created_at: "2022-03-03T15:14:54Z",
  version: "4.3",
  FAIL_TO_PASS: '["tests/test_a.py::test_new[a]"]',
  PASS_TO_PASS: ["tests/test_a.py::test_old"],
  environment_setup_commit: "298ccb478e6bf092953bca67a3d29dc6c35f6752",
  difficulty: "15 min - 1 hour",
  image: "swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest",
  eval_script: evalScript,
  log_parser: "parse_log_pytest_v2",
  eval_type: "pass_and_fail",
  image_assets: "",
};

async function examine(files: Files, path: string) {
  const root = await directoryWith(files);
  const found = await examineTasks([path], { cwd: root, variables: {} });
  const faults = found.faults.map(({ source, file, field, problem }) =>
    [source.replace(`${root}/`, ""), file, field, problem].filter(Boolean).join(": "),
  );
  return { root, tasks: found.tasks, faults };
}

const rows = (...all: readonly object[]) => ({
  "rows.jsonl": all.map((one) => `${JSON.stringify(one)}\n`).join(""),
});
const readRow = async (changes: object) => await examine(rows({ ...row, ...changes }), "rows.jsonl");

async function taskOf(changes: object = {}): Promise<Task> {
  const { tasks, faults } = await readRow(changes);
  expect(faults).toEqual([]);
  return tasks[0] ?? Promise.reject(new Error("there is no task"));
}

describe("an instance row", () => {
  it("is read with everything that it says", async () => {
    const { root, tasks, faults } = await readRow({});
    expect(faults).toEqual([]);
    expect(tasks).toEqual([
      {
        name: "astropy__astropy-12907",
        format: "swe-bench",
        source: join(root, "rows.jsonl:1"),
        checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
        parts: expect.any(Object),
        metadata: {
          repo: "astropy/astropy",
          version: "4.3",
          difficulty: "15 min - 1 hour",
          created_at: "2022-03-03T15:14:54Z",
        },
        environment: {
          image: { kind: "reference", reference: row.image },
          files: null,
          workdir: "/testbed",
          env: {},
          network: { mode: "public", allowedHosts: [] },
          limits: { cpus: null, memoryMb: null, storageMb: null },
          healthcheck: null,
        },
        steps: [
          {
            name: null,
            instruction: expect.stringMatching(
              /^\/testbed has .* astropy\/astropy\.[\s\S]*\n\nNested models give .*\r\n$/,
            ),
            agent: { timeoutSec: null, user: "root", network: { mode: "no-network", allowedHosts: [] } },
            files: null,
            setupScript: null,
            healthcheck: null,
            solution: { kind: "patch", patch },
            artifacts: [{ source: "/testbed", destination: null, exclude: [".git"] }],
            verifier: {
              mode: "separate",
              timeoutSec: 1800,
              user: "root",
              network: null,
              env: {},
              environment: null,
              check: {
                kind: "swe-bench",
                repository: "/testbed",
                baseCommit: row.base_commit,
                evalScript: expect.any(String),
                parser: "parse_log_pytest_v2",
                evalType: "pass_and_fail",
                failToPass: ["tests/test_a.py::test_new[a]"],
                passToPass: ["tests/test_a.py::test_old"],
              },
            },
            minRewards: null,
          },
        ],
        rewardStrategy: "mean",
        warnings: [],
      },
    ]);
  });

  it("without an image has the one of its id", async () => {
    const { environment } = await taskOf({ image: null, instance_id: "Owner__Some-Repo-17" });
    const reference = "swebench/sweb.eval.x86_64.owner_1776_some-repo-17:latest";
    expect(environment.image).toEqual({ kind: "reference", reference });
  });

  it("has a script that also prints the exit code of the tests", async () => {
    const { steps } = await taskOf();
    const check = steps[0]?.verifier.check;
    expect(check?.kind === "swe-bench" && check.evalScript.split("\n")).toEqual([
      "#!/bin/bash",
      "set -uxo pipefail",
      "cd /testbed",
      "git apply -v - <<'EOF_114329324912'",
      "EOF_114329324912",
      ": '>>>>> Start Test Output'",
      "pytest -rA tests/test_a.py",
      "SWEBENCH_TEST_EXIT_CODE=$?",
      ": '>>>>> End Test Output'",
      'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"',
      "git checkout abc1234 tests/test_a.py",
      "",
    ]);
  });

  it.each([
    ["problem_statement", "instruction"],
    ["base_commit", "environment"],
    ["image", "environment"],
    ["log_parser", "tests"],
    ["patch", "solution"],
  ])("a change of %s is one of the part %s", async (field, part) => {
    const values: Record<string, string> = { base_commit: "abcdef0", log_parser: "parse_log_pytest" };
    const [before, after] = [await taskOf(), await taskOf({ [field]: values[field] ?? "other" })];
    expect(after.checksum).not.toBe(before.checksum);
    expect(after.parts[part as keyof Task["parts"]]).not.toBe(before.parts[part as keyof Task["parts"]]);
    expect(after.parts.settings).toBe(before.parts.settings);
  });

  it.each<[string, object, string]>([
    [
      "of a version before 5",
      { eval_script: undefined },
      "has no eval_script, so it is of a version before 5",
    ],
    [
      "with a parser that brig lacks",
      { log_parser: "parse_log_quarto_cli" },
      'log_parser: is "parse_log_quarto_cli"',
    ],
    ["with a parser of another format", { log_parser: "pytest" }, 'log_parser: is "pytest"'],
    ["with a script without markers", { eval_script: "pytest" }, "eval_script: does not print the markers"],
    ["with a name that is none", { instance_id: "../../etc" }, 'instance_id: is "../../etc"'],
    ["with a name of two parts", { instance_id: "a/b" }, 'instance_id: is "a/b"'],
    ["with a commit that is an option", { base_commit: "--output=/etc/x" }, "base_commit: is"],
    ["with no tests to mend", { FAIL_TO_PASS: "[]" }, "FAIL_TO_PASS: is empty"],
    ["with tests that are no list", { FAIL_TO_PASS: "tests" }, "FAIL_TO_PASS: "],
    ["with tests that are no texts", { PASS_TO_PASS: "[1]" }, "PASS_TO_PASS: "],
    ["with another way to grade", { eval_type: "lenient" }, "eval_type: is"],
    [
      "with files beside its patch",
      { image_assets: '{"test_patch": [{"path": "a.png"}]}' },
      "image_assets: is not supported",
    ],
    ["with files that are none", { image_assets: "{" }, "image_assets: "],
    ["without an issue", { problem_statement: " \n" }, "problem_statement: "],
  ])("%s is refused", async (_, changes, fault) => {
    const { tasks, faults } = await readRow(changes);
    expect(tasks).toEqual([]);
    expect(faults).toEqual([expect.stringContaining(`rows.jsonl:1: ${fault}`)]);
  });
});

describe("a file of rows", () => {
  const second = { ...row, instance_id: "astropy__astropy-2" };

  it("may have empty lines, and names a fault by its line", async () => {
    const text = `${JSON.stringify(row)}\n\n{"instance_id": \n${JSON.stringify({ ...second, patch: 1 })}\n`;
    const { tasks, faults } = await examine({ "rows.jsonl": text }, "rows.jsonl");
    expect(tasks.map(({ name }) => name)).toEqual([row.instance_id]);
    expect(faults).toEqual(["rows.jsonl:3: is not JSON", "rows.jsonl:4: patch: is 1 and must be text"]);
  });

  it("may be one list", async () => {
    const { tasks, faults } = await examine(
      { "rows.json": JSON.stringify([row, second], null, 2) },
      "rows.json",
    );
    expect({ names: tasks.map(({ name }) => name), faults }).toEqual({
      names: [row.instance_id, second.instance_id],
      faults: [],
    });
  });

  it.each([
    ["without instances", { "rows.jsonl": '{"prompt": "\\"instance_id\\": 1, \\"base_commit\\": 2"}\n' }],
    ["that is empty", { "rows.jsonl": "" }],
    ["that is no JSON", { "rows.jsonl": '"instance_id": "base_commit":' }],
    ["with half a list", { "rows.jsonl": `[${JSON.stringify(row)}` }],
  ])("%s is refused", async (_, files) => {
    const { tasks, faults } = await examine(files, "rows.jsonl");
    expect(tasks).toEqual([]);
    expect(faults).toEqual([expect.stringContaining("rows.jsonl")]);
  });
});

describe("a task repository", () => {
  const { instance_id, repo, version, base_commit, image, log_parser, eval_type } = row;
  const settings = { instance_id, repo, version: Number(version), base_commit, image, log_parser, eval_type };
  const task = (id = instance_id, changes: object = {}, files: Files = {}): Files => {
    const all: Files = {
      "task.yaml": stringify({
        ...settings,
        instance_id: id,
        split: "test",
        datasets: ["x/Verified"],
        ...changes,
      }),
      "tests.json": JSON.stringify({
        FAIL_TO_PASS: ["tests/test_a.py::test_new[a]"],
        PASS_TO_PASS: row.PASS_TO_PASS,
      }),
      "problem_statement.md": row.problem_statement,
      "gold.patch": patch,
      "test.patch": "diff",
      "eval.sh": evalScript,
      Dockerfile: "FROM ubuntu\n",
      ...files,
    };
    return Object.fromEntries(Object.entries(all).map(([path, text]) => [`tasks/${id}/${path}`, text]));
  };
  const repository = { "sweb.yaml": "datasets: [x/Verified]\nsplits: [test]\n" };

  it("gives the same tasks as rows, line ends in patches included", async () => {
    const { tasks, faults } = await examine({ ...repository, ...task() }, ".");
    expect(faults).toEqual([]);
    const [fromRow] = [await taskOf()];
    expect(tasks[0]?.steps).toEqual(fromRow.steps);
    expect(tasks[0]?.environment).toEqual(fromRow.environment);
    expect(tasks[0]?.checksum).toBe(fromRow.checksum);
    expect(tasks[0]?.metadata).toEqual({
      repo,
      version: "4.3",
      split: "test",
      tags: ["x/Verified"],
    });
  });

  it("leaves out tasks of splits that it does not publish", async () => {
    const { tasks } = await examine(
      { ...repository, ...task(), ...task("a__b-1", { split: "deprecated" }) },
      ".",
    );
    expect(tasks.map(({ name }) => name)).toEqual([instance_id]);
  });

  it("may have one of its tasks read alone", async () => {
    const { tasks, faults } = await examine(task("a__b-1", { split: "deprecated" }), "tasks/a__b-1");
    expect({ names: tasks.map(({ name }) => name), faults }).toEqual({ names: ["a__b-1"], faults: [] });
  });

  it("names every fault of every task", async () => {
    const { tasks, faults } = await examine(
      {
        ...repository,
        ...task("a__b-1", { instance_id: "a__b-2" }),
        ...task("a__b-3", {}, { "test_assets/img/a.png": "png" }),
        ...task("a__b-4", {}, { "tests.json": "[" }),
        ...task("a__b-5", {}, { "tests.json": "[]" }),
        ...task("a__b-6", { log_parser: "parse_log_next" }),
        "tasks/a__b-7/task.yaml": "instance_id: a__b-7\n",
      },
      ".",
    );
    expect(tasks).toEqual([]);
    const of = (id: string, text: string) => expect.stringContaining(`tasks/${id}: ${text}`);
    expect(faults).toEqual([
      of("a__b-1", "task.yaml: instance_id: differs from the name of the directory"),
      of("a__b-3", "test_assets: is not supported"),
      of("a__b-4", "tests.json: is not JSON"),
      of("a__b-5", "tests.json: must be a table"),
      of("a__b-6", 'task.yaml: log_parser: is "parse_log_next"'),
      ...["tests.json", "gold.patch", "eval.sh", "problem_statement.md"].map((file) =>
        of("a__b-7", `${file}: is missing`),
      ),
    ]);
  });

  it("is not followed out of itself by links", async () => {
    const root = await directoryWith({ ...repository, ...task() });
    const elsewhere = await directoryWith({ "gold.patch": "secret" });
    await symlink(join(elsewhere, "gold.patch"), join(root, "tasks", instance_id, "test_assets"));
    const { faults } = await examineTasks([root], { cwd: root, variables: {} });
    expect(faults).toMatchObject([{ file: "test_assets" }]);
  });

  it("without tasks is refused", async () => {
    const { faults } = await examine({ ...repository, tasks: null }, ".");
    expect(faults).toEqual([expect.stringContaining("tasks: has no tasks")]);
  });
});
