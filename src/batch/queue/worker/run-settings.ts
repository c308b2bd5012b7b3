import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { AttemptRunner } from "../../runs/batch/run-batch.js";
import { type AttemptJob, type RunSpec, runSpecSchema, storeKeys } from "../records.js";
import type { ObjectStore } from "../store/object-store.js";
import { checksumOf } from "./fetched-tasks.js";

const MAX_BYTES = 64 * 1024 * 1024;

export interface RunSettingsOptions {
  store: ObjectStore;
  folder: string;
  /** Error: `usage.invalid` for settings that would give other attempts on this machine. */
  openRunner: (spec: RunSpec) => Promise<AttemptRunner>;
}

/** Runners for the attempts of each run, opened once. */
export class RunSettings {
  readonly #options: RunSettingsOptions;
  readonly #runners = new Map<string, Promise<AttemptRunner>>();

  constructor(options: RunSettingsOptions) {
    this.#options = options;
  }

  async runnerOf({ run, spec }: AttemptJob): Promise<AttemptRunner> {
    const known = this.#runners.get(spec);
    if (known !== undefined) return await known;
    const opened = this.#open(run, spec);
    this.#runners.set(spec, opened);
    opened.catch(() => this.#runners.delete(spec));
    return await opened;
  }

  async #open(run: string, checksum: string): Promise<AttemptRunner> {
    const { store, folder, openRunner } = this.#options;
    const key = storeKeys.spec(run, checksum);
    const file = join(folder, `${checksum}.json`);
    await rm(file, { force: true });
    const found = await store.get(key, file, { maxBytes: MAX_BYTES });
    const isWhole = found === "fetched" && (await checksumOf(file)) === checksum;
    const parsed = isWhole ? runSpecSchema.safeParse(parseJson(await readFile(file, "utf8"))) : null;
    if (parsed?.success) return await openRunner(parsed.data);
    throw new BrigError(
      `${key} in ${store.name} ${found === "missing" ? "is missing" : "is not what was put there"}`,
      {
        code: "store.failed",
        hint: "give all workers the --results of the command that submitted the run",
        cause: parsed?.error,
      },
    );
  }
}
