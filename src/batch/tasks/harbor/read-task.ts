import { listTaskFiles, partsOf, taskChecksums } from "../files.js";
import { shown, TaskNotes } from "../notes.js";
import { parseToml } from "../parse-text.js";
import type { ReadOptions, ReadTask } from "../read-task.js";
import { checkedTable, describedTable, isTable, isTaskName, nameOfDirectory, nameRule } from "../values.js";
import { type HarborReading, partOf, readEnvironment, TASK_FILE } from "./environment.js";
import { type TaskToml, taskTomlSchema } from "./schema.js";
import { readStep, stepSources } from "./step.js";

/** Other names in a task's directory are of no matter for its outcome. */
const names = [TASK_FILE, "instruction.md", "environment", "tests", "solution", "steps"];

/** Reads a directory with a task.toml. */
export async function readHarborTask(directory: string, options: ReadOptions): Promise<ReadTask> {
  const notes = new TaskNotes(directory);
  const tree = await listTaskFiles(directory, { notes, names, signal: options.signal });
  const text = tree.text(TASK_FILE, notes);
  const table = text === null ? null : parseToml(text, { notes, file: TASK_FILE });
  const toml =
    table === null ? null : checkedTable(taskTomlSchema, table, { notes, place: { file: TASK_FILE } });
  const version = toml === null ? null : schemaVersion(toml, notes);
  const named = table !== null && isTable(table.task) ? table.task.name : undefined;
  const faulty = {
    kind: "faulty",
    faults: notes.faults,
    name: String(named ?? nameOfDirectory(directory)),
  } as const;
  if (toml === null || version === null) return faulty;

  const reading: HarborReading = { tree, notes, variables: options.variables, ...version };
  const name = nameOf(toml, directory, notes);
  const main = readEnvironment(toml.environment, { directory: "environment", table: "environment" }, reading);
  const steps = main === null ? [] : readSteps(toml, { main, reading });
  if (main === null || notes.faults.length > 0) return faulty;
  return {
    kind: "task",
    task: {
      name,
      format: "harbor",
      source: directory,
      ...taskChecksums(partsOf(tree.entries(), partOf)),
      metadata: metadataOf(toml),
      environment: main.environment,
      steps,
      rewardStrategy: toml.multi_step_reward_strategy,
      warnings: notes.warnings,
    },
  };
}

function readSteps(toml: TaskToml, { main, reading }: Omit<Parameters<typeof readStep>[1], "toml">) {
  const sources = stepSources(toml);
  const stepNames = sources.map(({ name }) => name);
  const twice = stepNames.find((name, index) => stepNames.indexOf(name) !== index);
  if (twice !== undefined)
    reading.notes.refuse(`has two steps with the name ${shown(twice)}`, { file: TASK_FILE, field: "steps" });
  refuseContradictions(toml, reading);
  return sources.flatMap((source) => readStep(source, { toml, main, reading }) ?? []);
}

function refuseContradictions({ verifier, steps = [] }: TaskToml, { notes }: HarborReading): void {
  const ofSteps = steps.map((step, index) => ({ field: `steps[${index}].verifier`, ...step.verifier }));
  for (const { field, environment, environment_mode: mode } of [
    { field: "verifier", ...verifier },
    ...ofSteps,
  ])
    if (mode === "shared" && environment !== undefined)
      notes.refuse('contradicts environment_mode = "shared"', {
        file: TASK_FILE,
        field: `${field}.environment`,
      });
}

/** The directory's name is the name of a task that has none. */
function nameOf({ task }: TaskToml, directory: string, notes: TaskNotes): string {
  const name = task.name ?? nameOfDirectory(directory);
  if (isTaskName(name)) return name;
  const place = task.name === undefined ? {} : { file: TASK_FILE, field: "task.name" };
  notes.refuse(`${shown(name)} cannot be the name of a task`, { ...place, hint: nameRule });
  return "";
}

/** Values in `[metadata]` win over those in `[task]`, since tags and difficulty are usually there. */
function metadataOf({ metadata, task, source }: TaskToml): Record<string, unknown> {
  const { name: _, keywords, ...described } = task;
  return describedTable({ ...described, source, tags: keywords, ...metadata });
}

const newest = "1.4";
const known = ["1", "1.0", "1.1", "1.2", "1.3", newest];

/** A file without a version has the newest one. Null, with a fault, for a version that brig does not know. */
function schemaVersion(
  {
    schema_version: version,
    version: older,
  }: { schema_version?: string | undefined; version?: string | undefined },
  notes: TaskNotes,
): { hasOlderDefaults: boolean } | null {
  if (version === undefined) return { hasOlderDefaults: older !== undefined && older !== newest };
  if (known.includes(version)) return { hasOlderDefaults: version !== newest };
  notes.refuse(`is ${shown(version)}, and brig reads 1.0 to ${newest}`, {
    file: TASK_FILE,
    field: "schema_version",
  });
  return null;
}
