import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errnoOf } from "../../../lib/errno.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { LineReader } from "../../../lib/line-reader.js";
import { type AttemptResult, attemptResultSchema } from "./attempt-result.js";
import { type AttemptPlace, attemptKey } from "./run-files.js";

/** A longer line is none of brig's. */
export const MAX_RESULT_BYTES = 16 * 1024 * 1024;

/** A line of `results.jsonl`; null if it is torn or is no result. */
export type ResultLine = AttemptResult | null;

/** The lines of `results.jsonl` in their order. No file has no lines. */
export async function* readResultLines(file: string): AsyncGenerator<ResultLine> {
  const reader = new LineReader(MAX_RESULT_BYTES);
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 }))
      for (const line of reader.push(chunk)) yield line.kind === "line" ? parseResult(line.text) : null;
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  // A line without a newline is torn, even if what there is of it can be read.
  for (const line of reader.push(Buffer.from("\n"))) if (line.kind === "line") yield null;
}

/** The first result of each attempt for which `counts` is true. */
export async function* readResults(
  file: string,
  counts: (place: AttemptPlace) => boolean = () => true,
): AsyncGenerator<AttemptResult> {
  const seen = new Set<string>();
  for await (const result of readResultLines(file)) {
    if (result === null || seen.has(attemptKey(result))) continue;
    seen.add(attemptKey(result));
    if (counts(result)) yield result;
  }
}

/** Null if the text is not a result. */
export function parseResult(text: string): AttemptResult | null {
  return attemptResultSchema.safeParse(parseJson(text)).data ?? null;
}

/**
 * Appends results one after the other. A result is durable when its promise resolves; one that does not fit on the disk leaves
 * nothing of its line, which would merge with the next one.
 */
export class ResultsFile implements AsyncDisposable {
  readonly #file: FileHandle;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async open(path: string): Promise<ResultsFile> {
    return new ResultsFile(await open(path, "a", 0o644));
  }

  async append(result: AttemptResult): Promise<void> {
    const write = async () => {
      const { size } = await this.#file.stat();
      try {
        await this.#file.appendFile(`${JSON.stringify(result)}\n`);
        await this.#file.datasync();
      } catch (error) {
        // If this fails as well, the run's next start repairs the file.
        await this.#file.truncate(size).catch(() => undefined);
        throw error;
      }
    };
    const written = this.#last.then(write, write);
    this.#last = written;
    return await written;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#file.close();
  }
}
