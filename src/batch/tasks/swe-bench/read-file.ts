import { readFileStart, readTextFile } from "../../../lib/bounded-file.js";
import { TaskNotes } from "../notes/task-notes.js";
import type { ReadTask } from "../read-task.js";
import { readInstance } from "./read-instance.js";

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
function jsonOf(text: string, notes: TaskNotes): unknown {
  try {
    return JSON.parse(text);
  } catch {
    notes.refuse("is not JSON");
    return undefined;
  }
}
