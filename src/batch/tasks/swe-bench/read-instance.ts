import { taskChecksums } from "../files/checksum.js";
import { shown } from "../notes/fault-text.js";
import type { FaultPlace, TaskNotes } from "../notes/task-notes.js";
import { type TestLogParser, testLogParsers } from "../parsers/parse-test-log.js";
import type { ReadTask } from "../read-task.js";
import type { TaskCheck } from "../task.js";
import { checkedTable, isTable } from "../values/checked-table.js";
import { jsonTable } from "../values/json-value.js";
import { isTaskName, nameRule } from "../values/task-name.js";
import { recordedEvalScript } from "./eval-script.js";
import { type Instance, instanceSchema } from "./schema.js";

const REPOSITORY = "/testbed";

/** The harness's own. */
const EVAL_TIMEOUT_SEC = 1800;

/** Whether a row of a file is an instance of SWE-bench, of whatever version. */
function isInstance(row: unknown): boolean {
  return isTable(row) && typeof row.instance_id === "string" && typeof row.base_commit === "string";
}

/** Makes a task of an instance: a row of a data set, or what a directory of a task repository has. */
export function readInstance(row: unknown, notes: TaskNotes, place: FaultPlace = {}): ReadTask {
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
  const described = Object.entries({ repo, version, difficulty, created_at, split, tags });
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
    metadata: jsonTable(
      Object.fromEntries(described.filter(([, value]) => value !== undefined && value !== null)),
    ),
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
      {
        name: null,
        instruction: instructionOf(instance),
        // With a network, the agent could fetch the change that was made to the project.
        agent: { timeoutSec: null, user: "root", network: { mode: "no-network", allowedHosts: [] } },
        files: null,
        setupScript: null,
        healthcheck: null,
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
        minRewards: null,
      },
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
