import { stat } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { attemptDetail, type DetailLimits } from "./attempt-detail.js";
import { ResultIndex } from "./result-index.js";
import { readRunHeader } from "./run-header.js";
import type { AttemptDetail, RunHeader } from "./view-model.js";

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
    const marks = ["batch.json", "results.jsonl"].map((name) => stat(join(path, name)).catch(() => null));
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
