import { basename, dirname, extname, resolve } from "node:path";
import { type CsvError, parse as parseCsv } from "csv-parse/sync";
import { isNode, isSeq, LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import { readTextFile } from "../../lib/bounded-file.js";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { isTooDeep } from "../../lib/json/nesting.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { fileLines, listTaskFiles, taskChecksums } from "./files.js";
import { networkOf } from "./network.js";
import { shown, TaskNotes } from "./notes.js";
import type { ReadOptions, ReadTask } from "./read-task.js";
import { onlyStep, type Task, type TaskNetwork } from "./task.js";
import { checkedTable, filledVariables, isTable, isTaskName, nameRule } from "./values.js";

/** The rows of a file, each with its line. What cannot be read is a fault. */
type ReadRows = (text: string, notes: (line: number) => TaskNotes) => RawRow[];

const jsonLines: ReadRows = (text, notes) =>
  text.split("\n").flatMap((one, index) => {
    const line = index + 1;
    if (one.trim() === "") return [];
    try {
      return [{ line, value: JSON.parse(one) as unknown }];
    } catch {
      notes(line).refuse("is not valid JSON");
      return [];
    }
  });

const yamlList: ReadRows = (text, notes) => {
  const lineCounter = new LineCounter();
  try {
    const document = parseDocument(text, { lineCounter, merge: true, logLevel: "error" });
    const [fault] = document.errors;
    if (fault !== undefined) {
      notes(fault.linePos?.[0].line ?? 1).refuse(reasonOf(fault.message));
      return [];
    }
    if (!isSeq(document.contents)) {
      notes(1).refuse("must be a list of tasks");
      return [];
    }
    return document.contents.items.map((item) => ({
      line: isNode(item) ? lineCounter.linePos(item.range?.[0] ?? 0).line : 1,
      value: isNode(item) ? (item.toJS(document, { maxAliasCount: 100 }) as unknown) : item,
    }));
  } catch (error) {
    // Too many aliases, or nesting that exhausts the stack.
    if (!(error instanceof ReferenceError || error instanceof RangeError)) throw error;
    notes(1).refuse("is too deep, or repeats itself too often");
    return [];
  }
};

/** The first line has the names of the columns. An empty cell is a missing field. */
const csvTable: ReadRows = (text, notes) => {
  try {
    const records = parseCsv(text, { columns: true, info: true, skip_empty_lines: true }) as unknown as {
      info: { lines: number };
      record: Record<string, string>;
    }[];
    return records.map(({ info, record }) => ({
      // The row ends here; a quoted cell may have line breaks.
      line: info.lines,
      value: Object.fromEntries(
        Object.entries(record).flatMap(([key, cell]) => (cell === "" ? [] : [[key, cellValue(key, cell)]])),
      ),
    }));
  } catch (error) {
    if (!isCsvError(error)) throw error;
    notes(typeof error.lines === "number" ? error.lines : 1).refuse(reasonOf(error.message));
    return [];
  }
};

function isCsvError(error: unknown): error is CsvError & { lines?: unknown } {
  return error instanceof Error && "code" in error && String(error.code).startsWith("CSV_");
}

/** A cell has only text. What is no such value stays text, and is refused with the row. */
function cellValue(column: string, cell: string): unknown {
  if (column === "timeout_sec") return Number.isNaN(Number(cell)) ? cell : Number(cell);
  if (column === "tags") return cell.split(",").map((tag) => tag.trim());
  const value = column === "env" ? parseJson(cell) : undefined;
  return value === undefined ? cell : value;
}

function reasonOf(message: string): string {
  const [reason = ""] = message.split(/ at line |\n/);
  return shown(reason).slice(1, -1);
}

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
      onlyStep({
        instruction: prompt,
        agent: { timeoutSec: row.timeout_sec ?? null, user: null, network: null },
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
      }),
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

const MAX_PROMPT_CHARACTERS = 1024 * 1024;

/** One row. The format is brig's own, so unknown keys are refused. */
export const rowSchema = z.strictObject({
  prompt: z
    .string()
    .refine((text) => text.trim() !== "", "it must not be empty")
    .refine(
      (text) => text.length <= MAX_PROMPT_CHARACTERS,
      `it must have at most ${MAX_PROMPT_CHARACTERS} characters`,
    )
    .describe("What the agent is asked to do"),
  check: z
    .string()
    .min(1)
    .describe(
      "A shell command, run in the working directory of a fresh container: the task is solved if it succeeds",
    ),
  name: z
    .string()
    .refine(isTaskName, nameRule)
    .optional()
    .describe("Default: the file's name and the row's number"),
  workspace: z
    .string()
    .min(1)
    .optional()
    .describe("A directory, relative to the file, whose contents are copied to the working directory"),
  image: z.string().min(1).default("brig/base").describe("The image of both containers"),
  workdir: z
    .string()
    .regex(/^\/[^/\0]/, "it must be an absolute path other than /")
    .default("/workspace")
    .describe("The working directory, of which the check gets a copy"),
  timeout_sec: z.number().positive().optional().describe("How long the agent may take; default: no limit"),
  env: z.record(z.string().regex(/^[^=\0]+$/, "it must be the name of a variable"), z.string()).default({}),
  network: z
    .string()
    .regex(/^(?:none|full|allowlist:.+)$/, "it must be none, full or allowlist:HOST,…")
    .default("none"),
  tags: z.array(z.string()).default([]),
});

type Row = z.output<typeof rowSchema>;

/** A row as its file has it, before its fields are checked. */
interface RawRow {
  line: number;
  value: unknown;
}
