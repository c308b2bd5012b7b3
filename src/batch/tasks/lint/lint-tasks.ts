import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { setImmediate } from "node:timers/promises";
import { parseDockerfile } from "../../../sandbox/index.js";
import { listTaskFiles, type TaskTree } from "../files.js";
import { TaskNotes } from "../notes.js";
import { examineTasks, type ReadTasksOptions } from "../read-tasks.js";
import type { Task, TaskImage, TaskStep } from "../task.js";
import type { LintFinding, LintStep } from "./finding.js";
import { rules } from "./rules.js";

/** Names in a task's directory that rules look at. */
const names = [
  ...["task.toml", "environment", "tests", "solution", "steps"],
  ...["run-tests.sh", "solution.sh", "solution.yaml"],
];
const PLACEHOLDER = "1";
const MAX_TEXT_CHARACTERS = 4 * 1024 * 1024;

export interface LintReport {
  /** Number of tasks that can be used. */
  tasks: number;
  findings: LintFinding[];
}

/** Reads the tasks at these paths and applies all rules to each. What keeps a task from being used is a finding too. */
export async function lintTasks(paths: readonly string[], options: ReadTasksOptions): Promise<LintReport> {
  const { tasks, faults, warnings } = await examineWithoutVariables(paths, options);
  const findings = faults.map<LintFinding>(({ source, file, field, problem, hint }) => ({
    rule: "unusable",
    level: "error",
    source,
    file,
    message: field === null ? problem : `${field} ${problem}`,
    hint,
  }));
  for (const message of warnings) findings.push(readerWarning(options.cwd, message));
  for (const task of tasks) findings.push(...(await lintTask(task, options)));
  return { tasks: tasks.length, findings };
}

/** Examines tasks even if variables of this machine are not set, such as keys: they do not concern the task, so any text stands for them. */
async function examineWithoutVariables(
  paths: readonly string[],
  options: ReadTasksOptions,
): ReturnType<typeof examineTasks> {
  let { variables } = options;
  for (;;) {
    const examined = await examineTasks(paths, { ...options, variables });
    const missing = examined.faults.flatMap(({ missingVariable }) => missingVariable ?? []);
    if (missing.length === 0) return examined;
    const given = missing.map((name) => [name, PLACEHOLDER]);
    variables = Object.fromEntries([...Object.entries(variables), ...given]);
  }
}

function readerWarning(source: string, message: string): LintFinding {
  return { rule: "reader-warning", level: "warning", source, file: null, message, hint: null };
}

async function lintTask(task: Task, { signal }: ReadTasksOptions): Promise<LintFinding[]> {
  await setImmediate();
  signal?.throwIfAborted();
  const { source } = task;
  const leftAside = task.warnings.map((message) => readerWarning(source, message));
  const found = [...leftAside, ...(await taskFindings(task))];
  // The rules are about what an author can change; tasks of the other formats are as their benchmarks have them.
  if (task.format === "swe-bench") return found;
  const notes = new TaskNotes(source);
  const tree = task.format === "plain" ? null : await listTaskFiles(source, { notes, names, signal });
  return [...found, ...task.steps.flatMap((step) => lintStep(task, step, tree))];
}

function lintStep(task: Task, step: TaskStep, tree: TaskTree | null): LintFinding[] {
  const lint = lintStepOf(task, step, tree);
  const applied = rules.filter(
    ({ isForTerminalBench = false }) => isForTerminalBench || task.format !== "terminal-bench",
  );
  return applied.flatMap(({ name, level, check }) =>
    check(lint).map((remark) => ({
      rule: name,
      level: remark.level ?? level,
      source: task.source,
      file: remark.file ?? null,
      message: step.name === null ? remark.message : `step ${step.name}: ${remark.message}`,
      hint: null,
    })),
  );
}

function lintStepOf(task: Task, step: TaskStep, tree: TaskTree | null): LintStep {
  const { check } = step.verifier;
  const folder = (path: string | null) => (path === null || tree === null ? null : relative(tree.root, path));
  const testsFolder = folder("directory" in check ? (check.directory ?? contextOf(step)) : null);
  const baseFolder = folder("base" in check ? (check.base ?? null) : null);
  const filesFolder = folder(step.files);
  const solutionFolder = folder(step.solution?.kind === "script" ? step.solution.directory : null);
  const texts = textsBelow(
    tree,
    [testsFolder, baseFolder].flatMap((one) => one ?? []),
  );
  const file = check.kind === "parsed-output" ? folder(check.script) : null;
  const own = file === null ? null : (tree?.text(file, new TaskNotes(task.source)) ?? "");
  const script =
    own ??
    ("script" in check
      ? (texts.get(`${testsFolder}/${check.script}`) ?? texts.get(`${baseFolder}/${check.script}`) ?? "")
      : "");
  const all = [...(own === null ? [] : [own]), ...texts.values()];
  return {
    task,
    step,
    tree,
    testsFolder,
    solutionFolder,
    baseFolder,
    setupScript:
      filesFolder === null || step.setupScript === null ? null : join(filesFolder, step.setupScript),
    script: check.kind === "command" ? check.command : script,
    tests: check.kind === "command" ? check.command : all.join("\n"),
    solution: solutionText(step, textsBelow(tree, solutionFolder === null ? [] : [solutionFolder])),
  };
}

function solutionText({ solution }: TaskStep, texts: ReadonlyMap<string, string>): string {
  return solution?.kind === "commands" ? solution.commands.join("\n") : [...texts.values()].join("\n");
}

/** Build context of the verifier's own image, which then has the tests; null for one that is not built. */
function contextOf({ verifier }: TaskStep): string | null {
  const image = verifier.environment?.image;
  return image?.kind === "build" ? image.context : null;
}

/** The texts of folders, up to a limit. Other files are left out. */
function textsBelow(tree: TaskTree | null, folders: readonly string[]): Map<string, string> {
  const texts = new Map<string, string>();
  let characters = 0;
  if (tree === null) return texts;
  for (const entry of folders.flatMap((folder) => tree.below(folder))) {
    if (entry.kind !== "file" || characters + entry.bytes > MAX_TEXT_CHARACTERS) continue;
    // Whether it is a text is found out by reading it, and is no fault here.
    const text = tree.text(entry.path, new TaskNotes(tree.root));
    if (text === null) continue;
    texts.set(entry.path, text);
    characters += text.length;
  }
  return texts;
}

/** Reasons for which brig cannot run a task of any format, although it can be read. */
export async function taskFindings(task: Task): Promise<LintFinding[]> {
  const images = [task.environment, ...task.steps.flatMap(({ verifier }) => verifier.environment ?? [])];
  const unique = new Map(images.map(({ image }) => [JSON.stringify(image), image]));
  const unbuildable = await Promise.all([...unique.values()].map((image) => dockerfileFindings(task, image)));
  return unbuildable.flat();
}

async function dockerfileFindings({ source }: Task, image: TaskImage): Promise<LintFinding[]> {
  if (image.kind !== "build") return [];
  const path = join(image.context, image.dockerfile);
  const { buildKitFeatures } = parseDockerfile(await readFile(path, "utf8"), image.buildArgs);
  const file = relative(source, path);
  const recent = buildKitFeatures.filter(({ isRecent }) => isRecent);
  return recent.map(({ line, name }) => ({
    rule: "needs-buildkit",
    level: "warning",
    source,
    file: file.startsWith("..") ? null : file,
    message: `line ${line}: ${name} needs the BuildKit of Docker 23 or newer`,
    hint: null,
  }));
}
