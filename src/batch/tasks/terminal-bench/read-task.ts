import { partsOf, taskChecksums } from "../files/checksum.js";
import { listTaskFiles } from "../files/list-files.js";
import type { TaskTree } from "../files/task-tree.js";
import { shown } from "../notes/fault-text.js";
import { TaskNotes } from "../notes/task-notes.js";
import type { ReadOptions, ReadTask } from "../read-task.js";
import type { TaskCheck, TaskPart, TaskSolution, TaskStep } from "../task.js";
import { checkedTable } from "../values/checked-table.js";
import { jsonTable } from "../values/json-value.js";
import { parseYaml } from "../values/parse-text.js";
import { isTaskName, nameOfDirectory, nameRule } from "../values/task-name.js";
import { readEnvironment, type TerminalBenchEnvironment } from "./environment.js";
import { type TaskYaml, taskYamlSchema } from "./schema.js";
import { readSolution } from "./solution.js";

const TASK_FILE = "task.yaml";
const TESTS_SCRIPT = "run-tests.sh";

/** Reads a directory with a task.yaml of Terminal-Bench. All of the directory is the context of its image. */
export async function readTerminalBenchTask(directory: string, options: ReadOptions): Promise<ReadTask> {
  const notes = new TaskNotes(directory);
  const tree = await listTaskFiles(directory, { notes, signal: options.signal });
  const yaml = readYaml(tree, notes);
  const name = nameOfDirectory(directory);
  if (!isTaskName(name)) notes.refuse(`${shown(name)} cannot be the name of a task`, { hint: nameRule });
  const main = readEnvironment(tree, { notes, variables: options.variables, name, isOfGrader });
  const check = yaml === null ? null : checkOf(yaml, tree, notes);
  const solution = readSolution(tree, notes);
  if (yaml === null || main === null || check === null || notes.faults.length > 0)
    return { kind: "faulty", faults: notes.faults, name };
  if (yaml.run_tests_in_same_shell)
    notes.warn(
      `${TASK_FILE}: run_tests_in_same_shell is left aside: the tests do not see the variables, the directory and the background jobs of the agent's shell`,
    );
  const step = stepOf(yaml, { main, check, solution });
  return {
    kind: "task",
    task: {
      name,
      format: "terminal-bench",
      source: directory,
      ...taskChecksums(partsOf(tree.entries(), partOf)),
      metadata: metadataOf(yaml),
      environment: main.environment,
      steps: [step],
      rewardStrategy: "mean",
      warnings: notes.warnings,
    },
  };
}

function readYaml(tree: TaskTree, notes: TaskNotes): TaskYaml | null {
  const text = tree.text(TASK_FILE, notes);
  const value = text === null ? undefined : parseYaml(text, { notes, file: TASK_FILE });
  return value === undefined
    ? null
    : checkedTable(taskYamlSchema, value, { notes, place: { file: TASK_FILE } });
}

/** The other parsers of the format belong to data sets that were converted to it. */
function checkOf({ parser_name: parser }: TaskYaml, tree: TaskTree, notes: TaskNotes): TaskCheck | null {
  if (!tree.hasFile(TESTS_SCRIPT)) notes.refuse("is missing", { file: TESTS_SCRIPT });
  if (parser !== "pytest") {
    notes.refuse(`is ${shown(parser)}, and brig reads the output of pytest only`, {
      file: TASK_FILE,
      field: "parser_name",
    });
    return null;
  }
  return {
    kind: "parsed-output",
    directory: tree.hasDirectory("tests") ? tree.absolute("tests") : null,
    script: tree.absolute(TESTS_SCRIPT),
    parser,
  };
}

function stepOf(
  yaml: TaskYaml,
  {
    main,
    check,
    solution,
  }: { main: TerminalBenchEnvironment; check: TaskCheck; solution: TaskSolution | null },
): TaskStep {
  return {
    name: null,
    instruction: yaml.instruction,
    agent: { timeoutSec: yaml.max_agent_timeout_sec, user: main.user, network: null },
    files: null,
    setupScript: null,
    healthcheck: null,
    solution,
    artifacts: [],
    verifier: {
      mode: "shared",
      ...(yaml.keep_services && { keepsServices: true }),
      timeoutSec: yaml.max_test_timeout_sec,
      user: "root",
      network: null,
      env: { TEST_DIR: "/tests" },
      environment: null,
      check,
    },
    minRewards: null,
  };
}

function metadataOf(yaml: TaskYaml): Record<string, unknown> {
  const { author_name, author_email, difficulty, category, tags } = yaml;
  const { estimated_duration_sec, expert_time_estimate_min, junior_time_estimate_min } = yaml;
  const times = { estimated_duration_sec, expert_time_estimate_min, junior_time_estimate_min };
  const given = Object.entries({ author_name, author_email, difficulty, category, tags, ...times });
  return jsonTable(Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== null)));
}

function isOfGrader(path: string): boolean {
  const part = partOf(path);
  return part === "tests" || part === "solution";
}

function partOf(path: string): TaskPart {
  if (path === TASK_FILE) return "settings";
  if (path === TESTS_SCRIPT || path === "tests" || path.startsWith("tests/")) return "tests";
  return path === "solution.sh" || path === "solution.yaml" ? "solution" : "environment";
}
