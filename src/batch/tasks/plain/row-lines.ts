import { type CsvError, parse as parseCsv } from "csv-parse/sync";
import { isNode, isSeq, LineCounter, parseDocument } from "yaml";
import { shown } from "../notes/fault-text.js";
import type { TaskNotes } from "../notes/task-notes.js";
import type { RawRow } from "./row.js";

/** The rows of a file, each with its line. What cannot be read is a fault. */
export type ReadRows = (text: string, notes: (line: number) => TaskNotes) => RawRow[];

export const jsonLines: ReadRows = (text, notes) =>
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

export const yamlList: ReadRows = (text, notes) => {
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
export const csvTable: ReadRows = (text, notes) => {
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
  if (column !== "env") return cell;
  try {
    return JSON.parse(cell) as unknown;
  } catch {
    return cell;
  }
}

function reasonOf(message: string): string {
  const [reason = ""] = message.split(/ at line |\n/);
  return shown(reason).slice(1, -1);
}
