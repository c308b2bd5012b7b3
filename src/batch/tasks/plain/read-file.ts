import { basename, dirname, extname, resolve } from "node:path";
import { readTextFile } from "../../../lib/bounded-file.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { fileLines, taskChecksums } from "../files/checksum.js";
import { listTaskFiles } from "../files/list-files.js";
import { shown } from "../notes/fault-text.js";
import { TaskNotes } from "../notes/task-notes.js";
import type { ReadOptions, ReadTask } from "../read-task.js";
import type { Task, TaskNetwork } from "../task.js";
import { checkedTable, isTable } from "../values/checked-table.js";
import { networkOf } from "../values/network.js";
import { filledVariables } from "../values/variables.js";
import { type RawRow, type Row, rowSchema } from "./row.js";
import { csvTable, jsonLines, type ReadRows, yamlList } from "./row-lines.js";

const MAX_FILE_BYTES = 256 * 1024 * 1024;
const CHECK_TIMEOUT_SEC = 600;

const rowReaders: Readonly<Record<string, ReadRows>> = {
  ".jsonl": jsonLines,
  ".yaml": yamlList,
  ".yml": yamlList,
  ".csv": csvTable,
};

/** Reads a file of rows, which is JSONL, YAML or CSV by its name. */
export async function readPlainFile(file: string, options: ReadOptions): Promise<ReadTask[]> {
  const read = await readTextFile(file, MAX_FILE_BYTES);
  const readRows = rowReaders[extname(file).toLowerCase()];
  if (read.kind !== "text" || readRows === undefined)
    return [faulty(file, read.kind === "unreadable" ? read.reason : "is not a file of rows")];
  const faults: ReadTask[] = [];
  const notesOf = (line: number) => {
    const notes = new TaskNotes(`${file}:${line}`);
    faults.push({ kind: "faulty", faults: notes.faults });
    return notes;
  };
  const rows = readRows(read.text, notesOf);
  if (rows.length === 0 && faults.length === 0) return [faulty(file, "has no tasks")];
  const tasks: ReadTask[] = [];
  for (const [index, row] of rows.entries()) {
    options.signal?.throwIfAborted();
    tasks.push(await readRow(row, { file, number: index + 1, options }));
  }
  return [...faults, ...tasks];
}

interface RowPlace {
  file: string;
  number: number;
  options: ReadOptions;
}

async function readRow({ line, value }: RawRow, { file, number, options }: RowPlace): Promise<ReadTask> {
  const notes = new TaskNotes(`${file}:${line}`);
  if (isTooDeep(value)) notes.refuse("is nested too deeply");
  const row = notes.faults.length > 0 ? null : checkedTable(rowSchema, value, { notes, place: {} });
  const given = isTable(value) && typeof value.name === "string" ? value.name : undefined;
  const name = given ?? `${stemOf(file)}-${number}`;
  const faulty = { kind: "faulty", faults: notes.faults, name } as const;
  if (row === null) return faulty;
  const env = filledVariables(row.env, options.variables, { notes, place: { field: "env" } });
  const workspace = row.workspace === undefined ? null : resolve(dirname(file), row.workspace);
  const files = workspace === null ? [] : await workspaceLines(workspace, { notes, signal: options.signal });
  const network = networkOfRow(row.network, notes);
  if (notes.faults.length > 0) return faulty;
  return {
    kind: "task",
    task: taskOfRow(row, { name, source: notes.source, env, workspace, files, network }),
  };
}

interface RowParts {
  name: string;
  source: string;
  env: Record<string, string>;
  workspace: string | null;
  files: readonly string[];
  network: TaskNetwork;
}

/** A task whose only test is a command. What is not in the row itself has been read and checked already. */
export function taskOfRow(row: Row, { name, source, env, workspace, files, network }: RowParts): Task {
  const { prompt, check, image, workdir } = row;
  const environment = {
    image: { kind: "reference", reference: image },
    files: workspace,
    workdir,
    env,
    network,
    limits: { cpus: null, memoryMb: null, storageMb: null },
    healthcheck: null,
  } as const;
  return {
    name,
    format: "plain",
    source,
    ...taskChecksums({
      instruction: [prompt],
      // The variables as the row has them: what they are filled in with is no part of the task.
      environment: [JSON.stringify([image, workdir, network, Object.entries(row.env).toSorted()]), ...files],
      tests: [check],
      settings: [JSON.stringify(row.timeout_sec ?? null)],
    }),
    metadata: { tags: row.tags },
    environment,
    steps: [
      {
        name: null,
        instruction: prompt,
        agent: { timeoutSec: row.timeout_sec ?? null, user: null, network: null },
        files: null,
        setupScript: null,
        healthcheck: null,
        solution: null,
        artifacts: [{ source: workdir, destination: null, exclude: [] }],
        verifier: {
          mode: "separate",
          timeoutSec: CHECK_TIMEOUT_SEC,
          user: null,
          network: null,
          env: {},
          // Its working directory is what the agent left, without what the agent removed.
          environment: { ...environment, files: null },
          check: { kind: "command", command: check },
        },
        minRewards: null,
      },
    ],
    rewardStrategy: "mean",
    warnings: [],
  };
}

async function workspaceLines(
  workspace: string,
  { notes, signal }: { notes: TaskNotes; signal: AbortSignal | undefined },
): Promise<string[]> {
  const inner = new TaskNotes(workspace);
  try {
    const tree = await listTaskFiles(workspace, { notes: inner, signal });
    for (const { file, problem } of inner.faults)
      notes.refuse(`${file === null ? "" : `${shown(file)} `}${problem}`, { field: "workspace" });
    return fileLines(tree.entries());
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    notes.refuse(`${shown(workspace)}: ${systemReason(error)}`, { field: "workspace" });
    return [];
  }
}

function networkOfRow(text: string, notes: TaskNotes): TaskNetwork {
  if (text === "full") return { mode: "public", allowedHosts: [] };
  const none: TaskNetwork = { mode: "no-network", allowedHosts: [] };
  if (text === "none") return none;
  const allowed_hosts = text.slice("allowlist:".length).split(",");
  return networkOf({ network_mode: "allowlist", allowed_hosts }, notes, { field: "network" }) ?? none;
}

function stemOf(file: string): string {
  const stem = basename(file, extname(file))
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .slice(0, 100);
  return stem === "" ? "task" : stem;
}

function faulty(file: string, problem: string): ReadTask {
  const notes = new TaskNotes(file);
  notes.refuse(problem);
  return { kind: "faulty", faults: notes.faults };
}
