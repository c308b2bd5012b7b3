import { type Dirent, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import { readFileStart, readTextFile } from "../../lib/bounded-file.js";
import { systemReason } from "../../lib/errno.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { listTaskFiles, type TaskTree, taskChecksums } from "./files.js";
import { type FaultPlace, shown, TaskNotes } from "./notes.js";
import { parseYaml } from "./parse-text.js";
import { type TestLogParser, testLogParsers } from "./parsers/parse-test-log.js";
import type { ReadOptions, ReadTask } from "./read-task.js";
import { onlyStep, type TaskCheck } from "./task.js";
import { checkedTable, describedTable, isTable, isTaskName, nameRule, type Table } from "./values.js";

/** The largest data set has a tenth of it. */
const MAX_FILE_BYTES = 400 * 1024 * 1024;

/** A row is not longer, and has the keys of an instance. */
const FIRST_ROW_BYTES = 8 * 1024 * 1024;

/** Whether a JSON or JSONL file has instances of SWE-bench, by the keys in its beginning. */
export async function hasInstances(path: string): Promise<boolean> {
  const start = await readFileStart(path, FIRST_ROW_BYTES);
  if (start.kind !== "read") return false;
  // In a text inside of JSON, the quotes have a backslash.
  return ["instance_id", "base_commit"].every((key) =>
    new RegExp(`(?<!\\\\)"${key}"\\s{0,32}:`).test(start.bytes.toString("latin1")),
  );
}

/** Reads a JSONL file of instance rows, or a JSON file with a list of them. */
export async function readSweBenchFile(path: string): Promise<readonly ReadTask[]> {
  const notes = new TaskNotes(path);
  const text = await textOf(path, notes);
  const rows = text === null ? [] : /^\s*\[/.test(text) ? listed(text, notes) : lined(text, path);
  if (rows.length === 0 && notes.faults.length === 0) notes.refuse("has no instances");
  if (notes.faults.length > 0) return [{ kind: "faulty", faults: notes.faults }];
  return rows.map(({ row, notes: own }) =>
    own.faults.length > 0 ? { kind: "faulty", faults: own.faults } : readInstance(row, own),
  );
}

async function textOf(path: string, notes: TaskNotes): Promise<string | null> {
  const read = await readTextFile(path, MAX_FILE_BYTES);
  if (read.kind === "text") return read.text;
  notes.refuse(read.kind === "missing" ? "does not exist" : read.reason);
  return null;
}

interface Row {
  row: unknown;
  notes: TaskNotes;
}

function listed(text: string, notes: TaskNotes): Row[] {
  const list = jsonOf(text, notes);
  if (!Array.isArray(list)) return [];
  return list.map((row: unknown, index) => ({ row, notes: new TaskNotes(`${notes.source}[${index}]`) }));
}

function lined(text: string, path: string): Row[] {
  return text.split("\n").flatMap((line, index) => {
    const notes = new TaskNotes(`${path}:${index + 1}`);
    return line.trim() === "" ? [] : [{ row: jsonOf(line, notes), notes }];
  });
}

/** Undefined, with a fault, for what is no JSON. */
function jsonOf(text: string, notes: TaskNotes, place: FaultPlace = {}): unknown {
  const value = parseJson(text);
  if (value === undefined) notes.refuse("is not JSON", place);
  return value;
}

const REPOSITORY = "/testbed";

/** The harness's own. */
const EVAL_TIMEOUT_SEC = 1800;

/** Whether a row of a file is an instance of SWE-bench, of whatever version. */
function isInstance(row: unknown): boolean {
  return isTable(row) && typeof row.instance_id === "string" && typeof row.base_commit === "string";
}

/** Makes a task of an instance: a row of a data set, or what a directory of a task repository has. */
function readInstance(row: unknown, notes: TaskNotes, place: FaultPlace = {}): ReadTask {
  const name = isTable(row) && typeof row.instance_id === "string" ? row.instance_id : undefined;
  const faulty = () => ({ kind: "faulty", faults: notes.faults, name }) as const;
  if (isTable(row) && !row.eval_script && isInstance(row)) {
    notes.refuse("has no eval_script, so it is of a version before 5", {
      ...place,
      hint: "take the rows of version 5, or make them with a task repository and `swebench dataset`",
    });
    return faulty();
  }
  const instance = checkedTable(instanceSchema, row, { notes, place });
  const check = instance === null ? null : checkOf(instance, notes, place);
  if (instance === null || check === null || notes.faults.length > 0) return faulty();
  return { kind: "task", task: taskOf(instance, { check, notes }) };
}

function checkOf(instance: Instance, notes: TaskNotes, place: FaultPlace): TaskCheck | null {
  const refuse = (field: keyof Instance & string, problem: string, hint?: string) =>
    notes.refuse(problem, { ...place, field, ...(hint === undefined ? {} : { hint }) });
  const { instance_id: id, log_parser: name, FAIL_TO_PASS: failToPass, image_assets: assets } = instance;
  if (!isTaskName(id) || id.includes("/")) refuse("instance_id", `is ${shown(id)}`, nameRule);
  if (failToPass.length === 0) refuse("FAIL_TO_PASS", "is empty, so that nothing would be graded");
  if ([...(assets?.patch ?? []), ...(assets?.test_patch ?? [])].length > 0)
    refuse("image_assets", "is not supported: the tests would lack these files");
  const evalScript = recordedEvalScript(instance.eval_script);
  if (evalScript === null) refuse("eval_script", "does not print the markers around the tests' output");
  const parser = parserOf(name);
  if (parser === null) refuse("log_parser", `is ${shown(name)}, which brig does not have`);
  if (evalScript === null || parser === null) return null;
  return {
    kind: "swe-bench",
    repository: REPOSITORY,
    baseCommit: instance.base_commit,
    evalScript,
    parser,
    evalType: instance.eval_type,
    failToPass,
    passToPass: instance.PASS_TO_PASS,
  };
}

function parserOf(name: string): TestLogParser | null {
  return testLogParsers.find((parser) => parser === name && name.startsWith("parse_log_")) ?? null;
}

function taskOf(
  instance: Instance,
  { check, notes }: { check: TaskCheck; notes: TaskNotes },
): Extract<ReadTask, { kind: "task" }>["task"] {
  const reference = instance.image ?? imageOf(instance.instance_id);
  const { repo, version, difficulty, created_at, split, datasets: tags } = instance;
  return {
    name: instance.instance_id,
    format: "swe-bench",
    source: notes.source,
    ...taskChecksums({
      instruction: [instance.problem_statement],
      environment: [reference, instance.base_commit],
      tests: [JSON.stringify(check)],
      solution: [instance.patch],
    }),
    metadata: describedTable({ repo, version, difficulty, created_at, split, tags }),
    environment: {
      image: { kind: "reference", reference },
      files: null,
      workdir: REPOSITORY,
      env: {},
      // Evaluation scripts install packages.
      network: { mode: "public", allowedHosts: [] },
      limits: { cpus: null, memoryMb: null, storageMb: null },
      healthcheck: null,
    },
    steps: [
      onlyStep({
        instruction: instructionOf(instance),
        // With a network, the agent could fetch the change that was made to the project.
        agent: { timeoutSec: null, user: "root", network: { mode: "no-network", allowedHosts: [] } },
        solution: { kind: "patch", patch: instance.patch },
        // The verifier's own repository has the commit that its script goes back to.
        artifacts: [{ source: REPOSITORY, destination: null, exclude: [".git"] }],
        verifier: {
          mode: "separate",
          timeoutSec: EVAL_TIMEOUT_SEC,
          user: "root",
          network: null,
          env: {},
          environment: null,
          check,
        },
      }),
    ],
    rewardStrategy: "mean",
    // Other columns of a row are of no matter for its outcome.
    warnings: [],
  };
}

function imageOf(id: string): string {
  return `swebench/sweb.eval.x86_64.${id.toLowerCase().replaceAll("__", "_1776_")}:latest`;
}

function instructionOf({ repo, problem_statement: problem }: Instance): string {
  return `${REPOSITORY} has the source code of ${repo}. Change it so that the following issue is resolved. Tests that show it are run afterwards; you need not write any.\n\n${problem}`;
}

const text = z.string();
const optionalText = z.string().nullish();

/** Unquoted versions in YAML are numbers. */
const version = z.union([z.string(), z.number().transform(String)]);

const testList = z.union([z.array(z.string()), z.string()]).transform((value, context): string[] => {
  if (typeof value !== "string") return value;
  const list = z.array(z.string()).safeParse(parseJson(value));
  if (list.success) return list.data;
  context.addIssue({ code: "custom", message: "it must be a list of tests, or JSON of one" });
  return z.NEVER;
});

const asset = z.looseObject({ path: z.string() });
const assets = z.looseObject({ patch: z.array(asset).nullish(), test_patch: z.array(asset).nullish() });

/** In the data sets it is a text with JSON, which may be empty. */
const imageAssets = z.union([assets, z.string()]).transform((value, context): z.output<typeof assets> => {
  if (typeof value !== "string") return value;
  const parsed = value === "" ? { success: true as const, data: {} } : assets.safeParse(parseJson(value));
  if (parsed.success) return parsed.data;
  context.addIssue({ code: "custom", message: "it must be a table of files, or JSON of one" });
  return z.NEVER;
});

/** Columns of an instance that brig uses. Data sets have further ones. */
const instanceSchema = z.looseObject({
  instance_id: text,
  repo: text,
  base_commit: z.string().regex(/^[0-9a-f]{7,64}$/, "it must be the hash of a commit"),
  patch: text,
  problem_statement: text.refine((value) => value.trim() !== "", "it must not be empty"),
  version: version.nullish(),
  FAIL_TO_PASS: testList,
  PASS_TO_PASS: testList,
  image: z.string().min(1).nullish(),
  eval_script: text,
  log_parser: text,
  eval_type: z.enum(["pass_and_fail", "fail_only"]),
  image_assets: imageAssets.nullish(),
  difficulty: optionalText,
  created_at: z.union([z.string(), z.date().transform((date) => date.toISOString())]).nullish(),
  split: optionalText,
  datasets: z.array(z.string()).nullish(),
});
type Instance = z.output<typeof instanceSchema>;

/** A task repository's own description. Tasks of other splits were withdrawn. */
const repositorySchema = z.looseObject({ splits: z.array(z.string()).default(["test"]) });

const START = ">>>>> Start Test Output";
const END = ">>>>> End Test Output";
const HEADER = ["#!/bin/bash", "set -uxo pipefail"];

/**
 * The evaluation script as the format's harness runs it: it also prints the exit code of the tests' command, which
 * grading compares with the log. Null if it prints no markers around the output of the tests.
 */
function recordedEvalScript(script: string): string | null {
  if (!script.includes(START) || !script.includes(END)) return null;
  const lines = script
    .trim()
    .split("\n")
    .filter((line) => !HEADER.includes(line));
  const end = lines.findIndex((line) => line.includes(END));
  const recorded = [
    ...lines.slice(0, end),
    "SWEBENCH_TEST_EXIT_CODE=$?",
    ...lines.slice(end, end + 1),
    'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"',
    ...lines.slice(end + 1),
  ];
  return `${[...HEADER, ...recorded].join("\n")}\n`;
}

const REPOSITORY_FILE = "sweb.yaml";
const TASK_FILE = "task.yaml";
const TESTS_FILE = "tests.json";
const ASSETS = "test_assets";

/** Files of a task that stand for columns of a data set. Line ends are kept, since patches depend on them. */
const columns = {
  patch: "gold.patch",
  eval_script: "eval.sh",
  problem_statement: "problem_statement.md",
} as const;

const taskNames = [TASK_FILE, TESTS_FILE, ASSETS, ...Object.values(columns)];

/** Reads a task repository: each directory in `tasks/`, but for those of splits that it does not publish. */
export async function readTaskRepository(
  directory: string,
  options: ReadOptions,
): Promise<readonly ReadTask[]> {
  const notes = new TaskNotes(directory);
  const tree = await listTaskFiles(directory, { notes, names: [REPOSITORY_FILE], signal: options.signal });
  const value = yamlOf(REPOSITORY_FILE, tree, notes);
  const repository =
    value === undefined
      ? null
      : checkedTable(repositorySchema, value, { notes, place: { file: REPOSITORY_FILE } });
  if (repository === null) return [{ kind: "faulty", faults: notes.faults }];
  const tasks: ReadTask[] = [];
  for (const name of taskDirectories(directory, notes)) {
    options.signal?.throwIfAborted();
    const read = await readSweBenchTask(join(directory, "tasks", name), options);
    const split = read.kind === "task" ? read.task.metadata.split : undefined;
    if (typeof split !== "string" || repository.splits.includes(split)) tasks.push(read);
  }
  return notes.faults.length === 0 ? tasks : [...tasks, { kind: "faulty", faults: notes.faults }];
}

function taskDirectories(directory: string, notes: TaskNotes): string[] {
  try {
    const entries: Dirent[] = readdirSync(join(directory, "tasks"), { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    if (names.length === 0) notes.refuse("has no tasks", { file: "tasks" });
    return names.toSorted();
  } catch (error) {
    notes.refuse(`cannot be read: ${systemReason(error)}`, { file: "tasks" });
    return [];
  }
}

/** Reads one directory of a task repository. */
export async function readSweBenchTask(directory: string, { signal }: ReadOptions): Promise<ReadTask> {
  const notes = new TaskNotes(directory);
  const tree = await listTaskFiles(directory, { notes, names: taskNames, signal });
  const row = rowOf(tree, notes);
  if (row !== null && row.instance_id !== basename(directory))
    notes.refuse("differs from the name of the directory", { file: TASK_FILE, field: "instance_id" });
  if (tree.below(ASSETS).length > 0)
    notes.refuse("is not supported: the tests would lack these files", { file: ASSETS });
  if (row === null || notes.faults.length > 0)
    return { kind: "faulty", faults: notes.faults, name: basename(directory) };
  return readInstance(row, notes, { file: TASK_FILE });
}

function rowOf(tree: TaskTree, notes: TaskNotes): Table | null {
  const settings = yamlOf(TASK_FILE, tree, notes);
  const tests = testsOf(tree, notes);
  const texts = Object.entries(columns).map(([column, file]) => [column, tree.text(file, notes)] as const);
  if (!isTable(settings) || tests === null || texts.some(([, text]) => text === null)) {
    if (settings !== undefined && !isTable(settings)) notes.refuse("must be a table", { file: TASK_FILE });
    return null;
  }
  return { ...settings, ...tests, ...Object.fromEntries(texts) };
}

function testsOf(tree: TaskTree, notes: TaskNotes): Table | null {
  const text = tree.text(TESTS_FILE, notes);
  const tests = text === null ? undefined : jsonOf(text, notes, { file: TESTS_FILE });
  if (isTable(tests)) return { FAIL_TO_PASS: tests.FAIL_TO_PASS, PASS_TO_PASS: tests.PASS_TO_PASS };
  if (tests !== undefined) notes.refuse("must be a table", { file: TESTS_FILE });
  return null;
}

function yamlOf(file: string, tree: TaskTree, notes: TaskNotes): unknown {
  const text = tree.text(file, notes);
  return text === null ? undefined : parseYaml(text, { notes, file });
}
