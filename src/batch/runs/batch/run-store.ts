import { readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { errnoOf } from "../../../lib/errno.js";
import { acquireLock, type FileLock, isLockFileOf } from "../../../lib/file-lock.js";
import { writeDurably } from "../../../lib/files/durable-file.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { type AttemptOutcome, outcomeOf } from "../results/attempt-outcome.js";
import type { AttemptResult } from "../results/attempt-result.js";
import {
  MAX_RESULT_BYTES,
  parseResult,
  ResultsFile,
  readResultLines,
  readResults,
} from "../results/results-file.js";
import {
  type AttemptPlace,
  attemptFolder,
  attemptKey,
  RESULT_FILE,
  runFiles,
  tryFolder,
} from "../results/run-files.js";
import { type BatchFile, batchFileSchema } from "./batch-settings.js";

const MAX_BATCH_BYTES = 64 * 1024 * 1024;

/** The folder of a run. */
export class RunStore {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  get resultsPath(): string {
    return join(this.folder, runFiles.results);
  }

  attemptPath(place: AttemptPlace): string {
    return join(this.folder, attemptFolder(place));
  }

  /** Makes the folder if it is missing, and takes it for this process. */
  async lock(): Promise<FileLock> {
    await makeDirectory(this.folder);
    const outcome = await acquireLock(join(this.folder, runFiles.batch));
    if (outcome.kind === "held") {
      await this.#removeUnfinished();
      return outcome.lock;
    }
    const { pid, host } = outcome.holder.owner;
    throw new BrigError(`${this.folder} is in use by another run: process ${pid} on ${host}`, {
      code: "session.busy",
      hint: "wait until it has ended, or name another folder with -o",
    });
  }

  /** Null for a folder that has nothing in it yet. */
  async readBatch(): Promise<BatchFile | null> {
    const file = join(this.folder, runFiles.batch);
    const read = await readTextFile(file, MAX_BATCH_BYTES);
    if (read.kind === "missing") return await this.#refuseForeignFolder();
    if (read.kind === "unreadable")
      throw new BrigError(`${file} ${read.reason}`, { code: "usage.invalid", cause: read.cause });
    const parsed = batchFileSchema.safeParse(parseJson(read.text));
    if (parsed.success) return parsed.data;
    throw new BrigError(`${file} is not the file of a run:\n${z.prettifyError(parsed.error)}`, {
      code: "usage.invalid",
      hint: "name the folder of a run that this version of brig wrote, or a new one",
      cause: parsed.error,
    });
  }

  async writeBatch(batch: BatchFile): Promise<void> {
    await writeDurably(join(this.folder, runFiles.batch), `${JSON.stringify(batch, null, 2)}\n`);
  }

  /** The outcomes in `results.jsonl` by attempt, and whether lines have to be removed from the file. */
  async readOutcomes(): Promise<{ outcomes: Map<string, AttemptOutcome>; isDamaged: boolean }> {
    const outcomes = new Map<string, AttemptOutcome>();
    let lines = 0;
    for await (const result of readResultLines(this.resultsPath)) {
      lines++;
      if (result === null || outcomes.has(attemptKey(result))) continue;
      outcomes.set(attemptKey(result), outcomeOf(result));
    }
    return { outcomes, isDamaged: lines !== outcomes.size };
  }

  /** Writes `results.jsonl` again, with the first result of each attempt for which `counts` is true. */
  async keepResults(counts: (place: AttemptPlace) => boolean): Promise<void> {
    await writeDurably(this.resultsPath, lines(readResults(this.resultsPath, counts)));
  }

  async openResults(): Promise<ResultsFile> {
    return await ResultsFile.open(this.resultsPath);
  }

  /** The folders of attempts and of their earlier tries, as `attemptFolder` and `tryFolder` name them. */
  async attemptFolders(): Promise<Set<string>> {
    const tasks = await readdir(join(this.folder, runFiles.attempts)).catch(orEmpty);
    const folders = new Set<string>();
    for (const task of tasks) {
      const path = join(runFiles.attempts, task);
      for (const name of await readdir(join(this.folder, path)).catch(orEmpty)) folders.add(join(path, name));
    }
    return folders;
  }

  /** Reads the result that an attempt wrote at its end; null if it is torn. `folder` is relative to that of the run. */
  async readResult(place: AttemptPlace, folder = attemptFolder(place)): Promise<AttemptResult | null> {
    const read = await readTextFile(join(this.folder, folder, RESULT_FILE), MAX_RESULT_BYTES);
    const result = read.kind === "text" ? parseResult(read.text) : null;
    return result !== null && attemptKey(result) === attemptKey(place) ? result : null;
  }

  /** An empty folder for a try of an attempt. Keeps that of an earlier try, and removes a torn one. */
  async prepareAttempt(place: AttemptPlace, { earlierTries }: { earlierTries: number }): Promise<string> {
    const folder = this.attemptPath(place);
    const earlier = earlierTries === 0 ? null : await this.readResult(place);
    if (earlier !== null && earlier.failure !== null) {
      const kept = join(this.folder, tryFolder(place, earlierTries));
      await rm(kept, { recursive: true, force: true });
      await rename(folder, kept);
    }
    await rm(folder, { recursive: true, force: true });
    await makeDirectory(folder);
    return folder;
  }

  /**
   * Takes attempts out of the run. They and their results stay in a folder of their own, which has the layout
   * of a run, and count no more.
   */
  async supersede(batch: BatchFile, isOld: (place: AttemptPlace) => boolean): Promise<void> {
    const folders = await this.#foldersOf(batch, isOld);
    if (folders.length === 0) return;
    const old = new RunStore(await this.#newSupersededFolder());
    await makeDirectory(old.folder);
    await old.writeBatch(batch);
    await writeDurably(old.resultsPath, lines(readResults(this.resultsPath, isOld)));
    for (const folder of folders) {
      await makeDirectory(join(old.folder, dirname(folder)));
      await rename(join(this.folder, folder), join(old.folder, folder));
    }
    await this.keepResults((place) => !isOld(place));
  }

  /** Keeps the settings and the results of the run as they are, without its attempts, and resolves to their folder. */
  async keepCopy(batch: BatchFile): Promise<string> {
    const copy = new RunStore(await this.#newSupersededFolder());
    await makeDirectory(copy.folder);
    await copy.writeBatch(batch);
    await writeDurably(copy.resultsPath, lines(readResults(this.resultsPath)));
    return copy.folder;
  }

  async #foldersOf({ tasks }: BatchFile, isOld: (place: AttemptPlace) => boolean): Promise<string[]> {
    const names = new Map(
      tasks.map(({ name }) => [dirname(attemptFolder({ task: name, attempt: 1 })), name]),
    );
    return [...(await this.attemptFolders())].filter((folder) => {
      const task = names.get(dirname(folder));
      const attempt = Number.parseInt(folder.slice(dirname(folder).length + 1), 10);
      return task !== undefined && isOld({ task, attempt });
    });
  }

  async #newSupersededFolder(): Promise<string> {
    const folder = join(this.folder, runFiles.superseded);
    const numbers = (await readdir(folder).catch(orEmpty)).map(Number).filter(Number.isSafeInteger);
    return join(folder, String(Math.max(0, ...numbers) + 1));
  }

  /** Files that a killed run has not finished writing. */
  async #removeUnfinished(): Promise<void> {
    const isUnfinished = (name: string) => /^[^.].*\.[0-9a-f]{12}\.new$/.test(name);
    for (const name of (await readdir(this.folder)).filter(isUnfinished)) await rm(join(this.folder, name));
  }

  async #refuseForeignFolder(): Promise<null> {
    const foreign = (await readdir(this.folder)).find((name) => !isLockFileOf(name, runFiles.batch));
    if (foreign === undefined) return null;
    throw new BrigError(`${this.folder} is not the folder of a run: it contains ${foreign}`, {
      code: "usage.invalid",
      hint: "name a new or empty folder with -o",
    });
  }
}

async function* lines(results: AsyncIterable<AttemptResult>): AsyncGenerator<string> {
  for await (const result of results) yield `${JSON.stringify(result)}\n`;
}

function orEmpty(error: unknown): string[] {
  if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return [];
  throw error;
}

/** The settings of a run, and the outcomes of the attempts that belong to it. */
export interface Run {
  batch: BatchFile;
  outcomes: AttemptOutcome[];
}

/** Reads a run, which another process may still be running. Error: `usage.invalid` for a folder that is none. */
export async function readRun(folder: string): Promise<Run> {
  const batch = await requireRun(folder);
  const { outcomes } = await new RunStore(folder).readOutcomes();
  const names = new Set(batch.tasks.map(({ name }) => name));
  const belongs = ({ task, attempt }: AttemptOutcome) =>
    names.has(task) && attempt <= batch.settings.attempts;
  return { batch, outcomes: [...outcomes.values()].filter(belongs) };
}

/** `batch.json` of a run. Error: `usage.invalid` for a folder without one. */
export async function requireRun(folder: string): Promise<BatchFile> {
  const file = join(folder, runFiles.batch);
  const batch = (await stat(file).catch(() => null)) === null ? null : await new RunStore(folder).readBatch();
  if (batch !== null) return batch;
  throw new BrigError(`${JSON.stringify(folder)} is not the folder of a run: it has no ${runFiles.batch}`, {
    code: "usage.invalid",
    hint: "name the folder that brig batch writes its results to",
  });
}
