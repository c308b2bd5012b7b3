import { closeSync, constants, openSync, readSync } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { passes, passKindOf } from "../../runs/results/attempt-outcome.js";
import type { AttemptResult } from "../../runs/results/attempt-result.js";
import { parseResult } from "../../runs/results/results-file.js";
import { runFiles } from "../../runs/results/run-files.js";
import { attemptDetail, type DetailLimits } from "./attempt-detail.js";
import { RunFiles, shownLine } from "./run-file.js";
import type { AttemptDetail, AttemptRow, RunHeader } from "./view-model.js";

/** The folder of a run, which may still be written. */
export class RunFolder {
  readonly index: ResultIndex;
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
    this.index = new ResultIndex(path);
  }

  /** Error: `usage.invalid` for a folder that is no run. */
  static async open(path: string): Promise<RunFolder> {
    const marks = [runFiles.batch, runFiles.results].map((name) => stat(join(path, name)).catch(() => null));
    if ((await Promise.all(marks)).every((mark) => mark?.isFile() !== true))
      throw new BrigError(`${JSON.stringify(path)} has neither batch.json nor results.jsonl`, {
        code: "usage.invalid",
        hint: "give the folder of one run, which brig batch names at its end: by default brig-runs/TIME",
      });
    return new RunFolder(path);
  }

  header(): RunHeader {
    return readRunHeader(this.#path);
  }

  /** Null for a row that there is not any more. */
  detail(at: number, limits: DetailLimits): AttemptDetail | null {
    const result = this.index.result(at);
    return result === null ? null : attemptDetail(this.#path, result, limits);
  }
}

const MAX_BATCH_BYTES = 64 * 1024 * 1024;
const MAX_SETTINGS = 100;
const MAX_TAGS = 20;

/** What the page uses of `batch.json`; a run of another version of brig may have more or less. */
const batchSchema = z.looseObject({
  brigVersion: z.string().nullish().catch(null),
  settings: z.record(z.string(), z.unknown()).nullish().catch(null),
  tasks: z
    .array(
      z.looseObject({
        name: z.string(),
        tags: z.array(z.string()).nullish().catch(null),
      }),
    )
    .nullish()
    .catch(null),
});

/** Reads `batch.json`. What it does not say is null or empty. */
function readRunHeader(folder: string): RunHeader {
  const bytes = new RunFiles(folder).bytes([runFiles.batch], { maxBytes: MAX_BATCH_BYTES });
  const value = bytes instanceof Buffer ? parseJson(bytes.toString("utf8")) : {};
  const { settings, tasks, brigVersion } = batchSchema.safeParse(value).data ?? {};
  const attempts = settings?.attempts;
  const perTask =
    typeof attempts === "number" && Number.isSafeInteger(attempts) && attempts > 0 ? attempts : null;
  return {
    name: shownLine(basename(folder)),
    plannedAttempts: tasks == null || perTask === null ? null : tasks.length * perTask,
    settings: [
      ...(brigVersion == null ? [] : [{ name: "brig", value: shownLine(brigVersion) }]),
      ...Object.entries(settings ?? {})
        .slice(0, MAX_SETTINGS)
        .flatMap(settingRow),
    ],
    tags: Object.fromEntries(
      (tasks ?? []).flatMap(({ name, tags }) =>
        tags == null || tags.length === 0 ? [] : [[shownLine(name), tags.slice(0, MAX_TAGS).map(shownLine)]],
      ),
    ),
  };
}

function settingRow([name, value]: [string, unknown]): RunHeader["settings"] {
  if (value === null || value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return [{ name: shownLine(name), value: shownLine(text) }];
}

/** A longer line is no result: it is counted and skipped. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
/** More rows than this would be too much for a page. */
const MAX_ROWS = 200_000;
/** The file is no link, and opening a FIFO that has its name does not wait. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

interface IndexedRow {
  row: AttemptRow;
  offset: number;
  length: number;
  /** Counts the lines of the file; the last line about an attempt wins. */
  seq: number;
}

/**
 * The rows of `results.jsonl`, and where each stands. The file may grow: `refresh` reads what is new. Only rows stay in
 * memory, and one line at a time.
 */
export class ResultIndex {
  readonly #file: string;
  readonly #rows: IndexedRow[] = [];
  readonly #places = new Map<string, number>();
  /** For each line, the row that it is about. */
  readonly #bySeq: number[] = [];
  #read = 0;
  #inode: number | null = null;
  #generation = 1;
  #unreadableLines = 0;
  #isSkipping = false;

  constructor(folder: string) {
    this.#file = join(folder, runFiles.results);
  }

  get generation(): number {
    return this.#generation;
  }

  get unreadableLines(): number {
    return this.#unreadableLines;
  }

  get seq(): number {
    return this.#bySeq.length;
  }

  rows(): AttemptRow[] {
    return this.#rows.map(({ row }) => row);
  }

  /** The rows that lines after `seq` are about, at most `limit`, and the number to continue with. */
  changes(since: number, limit: number): { rows: { at: number; row: AttemptRow }[]; seq: number } {
    const rows: { at: number; row: AttemptRow }[] = [];
    let seq = since;
    while (seq < this.#bySeq.length && rows.length < limit) {
      const at = this.#bySeq[seq] ?? -1;
      seq++;
      const indexed = this.#rows[at];
      if (indexed?.seq === seq) rows.push({ at, row: indexed.row });
    }
    return { rows, seq };
  }

  /** Reads the lines that are new. A file that has become shorter, or is another one, is read from its beginning. */
  async refresh(): Promise<void> {
    const file = await this.#open();
    if (file === null) return;
    try {
      const { size, ino } = await file.stat();
      if (size < this.#read || (this.#inode !== null && ino !== this.#inode)) this.#forget();
      this.#inode = ino;
      await this.#readNew(file);
    } finally {
      await file.close();
    }
  }

  /** The whole result of a row; null if the file has changed meanwhile. */
  result(at: number): AttemptResult | null {
    const indexed = this.#rows[at];
    if (indexed === undefined) return null;
    let file: number | undefined;
    try {
      file = openSync(this.#file, FLAGS);
      const buffer = Buffer.alloc(indexed.length);
      const bytesRead = readSync(file, buffer, 0, indexed.length, indexed.offset);
      return parseResult(buffer.toString("utf8", 0, bytesRead));
    } catch {
      return null;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }

  async #open(): Promise<FileHandle | null> {
    try {
      return await open(this.#file, FLAGS);
    } catch {
      return null;
    }
  }

  async #readNew(file: FileHandle): Promise<void> {
    let held = Buffer.alloc(0);
    for (;;) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, this.#read + held.length);
      if (bytesRead === 0) return;
      const bytes = Buffer.concat([held, chunk.subarray(0, bytesRead)]);
      const rest = this.#takeLines(bytes);
      held = Buffer.from(bytes.subarray(rest));
      this.#read += rest;
      if (held.length > MAX_LINE_BYTES) {
        this.#isSkipping = true;
        this.#read += held.length;
        held = Buffer.alloc(0);
      }
    }
  }

  /** Takes the complete lines, and returns where the rest begins. A line without its end may still be being written. */
  #takeLines(bytes: Buffer): number {
    let start = 0;
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
      if (this.#isSkipping) {
        this.#isSkipping = false;
        this.#unreadableLines++;
      } else this.#takeLine(bytes.toString("utf8", start, end), this.#read + start, end - start);
      start = end + 1;
    }
    return start;
  }

  #takeLine(text: string, offset: number, length: number): void {
    if (text.trim() === "") return;
    const result = parseResult(text);
    if (result === null || this.#rows.length >= MAX_ROWS) {
      this.#unreadableLines++;
      return;
    }
    const key = JSON.stringify([result.task, result.attempt]);
    const at = this.#places.get(key) ?? this.#rows.length;
    this.#places.set(key, at);
    this.#bySeq.push(at);
    this.#rows[at] = { row: attemptRow(result), offset, length, seq: this.#bySeq.length };
  }

  #forget(): void {
    this.#generation++;
    this.#rows.length = 0;
    this.#bySeq.length = 0;
    this.#places.clear();
    this.#read = 0;
    this.#unreadableLines = 0;
    this.#isSkipping = false;
  }
}

export function attemptRow(result: AttemptResult): AttemptRow {
  const { usage, agent } = result;
  return {
    task: shownLine(result.task),
    attempt: result.attempt,
    agent: shownLine(agent.name),
    model: agent.model === null ? null : shownLine(agent.model),
    status: result.status,
    reward: result.reward,
    cause: causeOf(result),
    passKind: passKindOf(result),
    startedAt: result.startedAt,
    wallMs: Math.max(0, Date.parse(result.endedAt) - Date.parse(result.startedAt)),
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    costUsd: usage.costUsd,
    toolCalls: usage.toolCalls,
  };
}

/** The first thing that kept an attempt from its full reward. */
function causeOf({ status, reward, failure, steps }: AttemptResult): string | null {
  if (status === "cancelled") return "cancelled";
  if (failure !== null) return failure.class;
  if (passes({ status, reward })) return null;
  const verifiers = steps.flatMap(({ verification }) =>
    verification === null || verification.verifier === "scored" ? [] : [verification.verifier],
  );
  if (verifiers.includes("tampered")) return "tampered";
  const ending = steps
    .map(({ agent }) => agent)
    .find((agent) => agent !== "completed" && agent !== "not-run");
  if (ending !== undefined) return ending === "failed" ? "agent-failed" : ending;
  const [verifier] = verifiers;
  if (verifier !== undefined) return verifier === "timed-out" ? "verifier-timed-out" : verifier;
  return status === "scored" ? "wrong" : "unscored";
}
