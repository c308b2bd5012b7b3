import { z } from "zod";
import { formatBytes } from "../../lib/bytes.js";
import { type ComposeService, readComposeService } from "./compose.js";
import { listTaskFiles, partsOf, type TaskTree, taskChecksums } from "./files.js";
import { shown, TaskNotes } from "./notes.js";
import { parseYaml } from "./parse-text.js";
import type { ReadOptions, ReadTask } from "./read-task.js";
import {
  onlyStep,
  type TaskCheck,
  type TaskEnvironment,
  type TaskImage,
  type TaskPart,
  type TaskSolution,
  type TaskStep,
} from "./task.js";
import {
  checkedTable,
  describedTable,
  isTaskName,
  nameOfDirectory,
  nameRule,
  type Variables,
} from "./values.js";

const TASK_FILE = "task.yaml";
const TESTS_SCRIPT = "run-tests.sh";

/** Reads a directory with a task.yaml of Terminal-Bench. All of the directory is the context of its image. */
export async function readTerminalBenchTask(directory: string, options: ReadOptions): Promise<ReadTask> {
  const notes = new TaskNotes(directory);
  const tree = await listTaskFiles(directory, { notes, signal: options.signal });
  const yaml = readYaml(tree, notes);
  const name = nameOfDirectory(directory);
  if (!isTaskName(name)) notes.refuse(`${shown(name)} cannot be the name of a task`, { hint: nameRule });
  const main = readEnvironment(tree, { notes, variables: options.variables, name });
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
  return onlyStep({
    instruction: yaml.instruction,
    agent: { timeoutSec: yaml.max_agent_timeout_sec, user: main.user, network: null },
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
  });
}

function metadataOf(yaml: TaskYaml): Record<string, unknown> {
  const { author_name, author_email, difficulty, category, tags } = yaml;
  const { estimated_duration_sec, expert_time_estimate_min, junior_time_estimate_min } = yaml;
  const times = { estimated_duration_sec, expert_time_estimate_min, junior_time_estimate_min };
  return describedTable({ author_name, author_email, difficulty, category, tags, ...times });
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

const minutes = z.number().min(0).nullish();

/** The keys of task.yaml that brig reads. Other keys are left aside with a warning. */
const taskYamlSchema = z.object({
  instruction: z.string().refine((text) => text.trim() !== "", "it must not be empty"),
  author_name: z.string().nullish(),
  author_email: z.string().nullish(),
  difficulty: z.string().nullish(),
  category: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
  parser_name: z.string().default("pytest"),
  max_agent_timeout_sec: z.number().positive().default(360),
  max_test_timeout_sec: z.number().positive().default(60),
  keep_services: z
    .boolean()
    .default(false)
    .describe("brig's own: what the agent left running goes on while the tests run"),
  run_tests_in_same_shell: z.boolean().default(false),
  disable_asciinema: z.boolean().nullish().describe("brig makes no such recording"),
  estimated_duration_sec: z.number().min(0).nullish(),
  expert_time_estimate_min: minutes,
  junior_time_estimate_min: minutes,
});
type TaskYaml = z.output<typeof taskYamlSchema>;

/** Keys typed into a terminal, which are commands if each is ended by the enter key and waited for. */
const solutionYamlSchema = z.array(
  z.object({
    command: z.string(),
    block: z.boolean().default(true),
    append_enter: z.boolean().default(true),
    min_timeout_sec: z.number().nullish(),
    max_timeout_sec: z.number().nullish(),
  }),
);

/** The kernel takes no longer argument of a program, which is how the commands get to the shell. */
const MAX_COMMAND_BYTES = 120 * 1024;

/** `solution.sh`, or the commands of `solution.yaml` one after the other in the same shell. */
function readSolution(tree: TaskTree, notes: TaskNotes): TaskSolution | null {
  const file = ["solution.sh", "solution.yaml"].find((name) => tree.hasFile(name));
  const text = file === undefined ? null : tree.text(file, notes);
  if (file === undefined || text === null) return null;
  const script = file === "solution.sh" ? text : typedCommands(file, text, notes);
  if (script === null) return null;
  if (Buffer.byteLength(script) <= MAX_COMMAND_BYTES) return { kind: "commands", commands: [script] };
  notes.warn(
    `${file}: it has more than ${formatBytes(MAX_COMMAND_BYTES)}, so the agent "oracle" cannot run it`,
  );
  return null;
}

function typedCommands(file: string, text: string, notes: TaskNotes): string | null {
  const value = parseYaml(text, { notes, file });
  const steps =
    value === undefined ? null : checkedTable(solutionYamlSchema, value, { notes, place: { file } });
  if (steps === null) return null;
  if (steps.every(({ block, append_enter: isEntered }) => block && isEntered))
    return steps.map(({ command }) => command).join("\n");
  notes.warn(`${file}: it types keys into a program, which the agent "oracle" cannot do`);
  return null;
}

interface TerminalBenchEnvironment {
  environment: TaskEnvironment;
  user: string | null;
}

/** The only service that the format knows. */
const SERVICE = "client";

/** The format has no limit for builds; this is Harbor's. */
const BUILD_TIMEOUT_SEC = 600;

function readEnvironment(
  tree: TaskTree,
  { notes, variables, name }: { notes: TaskNotes; variables: Variables; name: string },
): TerminalBenchEnvironment | null {
  // The format knows no other name for it.
  const file = tree.hasFile("docker-compose.yaml") ? "docker-compose.yaml" : undefined;
  const compose =
    file === undefined
      ? null
      : readComposeService(file, {
          ...{ tree, notes, service: SERVICE },
          variables: { ...variables, ...runnerVariables(name) },
          providedDirectories: ["/logs", "/agent-logs", "/tests"],
          isOfGrader,
        });
  if (file !== undefined && compose === null) return null;
  const image = imageOf(compose, tree, notes);
  if (image === null) return null;
  const noLimits = { cpus: null, memoryMb: null };
  return {
    environment: {
      image,
      files: null,
      ...(compose === null || compose.copies.length === 0 ? {} : { copies: compose.copies }),
      workdir: compose?.workdir ?? null,
      env: compose?.env ?? {},
      network: compose?.network ?? { mode: "public", allowedHosts: [] },
      limits: { ...(compose?.limits ?? noLimits), storageMb: null },
      healthcheck: null,
    },
    user: compose?.user ?? null,
  };
}

/** Variables that the format's own runner sets for the Compose file. The names of images and containers mean nothing to brig. */
function runnerVariables(name: string): Variables {
  const prefix = `tb__${name.replaceAll(".", "-")}`;
  return {
    COMPOSE_PROJECT_NAME: `${prefix}__client`,
    T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME: `${prefix}__client`,
    T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME: `${prefix}__client`,
    T_BENCH_TASK_DOCKER_NAME_PREFIX: prefix,
    T_BENCH_TEST_DIR: "/tests",
    T_BENCH_TASK_LOGS_PATH: "/logs",
    T_BENCH_CONTAINER_LOGS_PATH: "/logs",
    T_BENCH_TASK_AGENT_LOGS_PATH: "/agent-logs",
    T_BENCH_CONTAINER_AGENT_LOGS_PATH: "/agent-logs",
  };
}

function imageOf(compose: ComposeService | null, tree: TaskTree, notes: TaskNotes): TaskImage | null {
  if (compose?.build) {
    const { context, ...build } = compose.build;
    return { kind: "build", ...build, context: tree.absolute(context), timeoutSec: BUILD_TIMEOUT_SEC };
  }
  if (compose !== null && compose.image !== null) return { kind: "reference", reference: compose.image };
  if (tree.hasFile("Dockerfile"))
    return {
      ...{ kind: "build", context: tree.root, dockerfile: "Dockerfile" },
      ...{ buildArgs: {}, timeoutSec: BUILD_TIMEOUT_SEC },
    };
  notes.refuse("has no image", { hint: "give it a Dockerfile, and a docker-compose.yaml that builds it" });
  return null;
}
