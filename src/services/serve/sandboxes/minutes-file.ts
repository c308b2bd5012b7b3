import { dirname } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { systemReason } from "../../../lib/errno.js";
import { writeDurably } from "../../../lib/files/durable-file.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { readTextNow } from "../../../lib/files/read-text-now.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { CountedDay } from "./used-minutes.js";

const schema = z.object({
  /** Goes up when a later version could not read what this one writes. */
  format: z.literal(1),
  day: z.int(),
  clients: z.array(z.tuple([z.string(), z.number().min(0)])),
});

/** A file of tokens, from which the names are, is not larger. */
const MAX_BYTES = 4 * 1024 * 1024;
/** A service that is killed forgets no more than this. */
const WRITE_EVERY_MS = 1000;

/** Keeps what the clients of a service have used of the day, so that the next one with the same address goes on counting. */
export class MinutesFile {
  readonly before: CountedDay | null;
  readonly #path: string;
  readonly #onWarning: (error: unknown) => void;
  #counted: (() => CountedDay) | null = null;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(path: string, { onWarning }: { onWarning: (error: unknown) => void }) {
    this.#path = path;
    this.#onWarning = onWarning;
    this.before = readDay(path);
  }

  /** Writes what `counted` says, soon. */
  keep(counted: () => CountedDay): void {
    this.#counted = counted;
    this.#timer ??= setTimeout(() => this.#write(), WRITE_EVERY_MS).unref();
  }

  async close(): Promise<void> {
    this.#write();
    await this.#writing;
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const day = this.#counted?.();
    if (day === undefined) return;
    this.#writing = this.#writing
      .then(async () => {
        await makeDirectory(dirname(this.#path), { mode: 0o700 });
        await writeDurably(this.#path, textOf(day), { mode: 0o600 });
      })
      .catch((cause: unknown) => this.#fail(cause));
  }

  /** Says it once; the service goes on. */
  #fail(cause: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const why = `the minutes of clients cannot be kept in ${this.#path}: ${systemReason(cause)}`;
    const hint = "make it possible to write there; else a restart gives each client its whole day again";
    this.#onWarning(new BrigError(why, { code: "store.failed", hint, cause }));
  }
}

/** Null for what is no such file: nobody can be refused for what nobody knows. */
function readDay(path: string): CountedDay | null {
  const text = readTextNow(path, MAX_BYTES);
  const parsed = schema.safeParse(text === null ? undefined : parseJson(text));
  return parsed.success ? { day: parsed.data.day, usedMs: new Map(parsed.data.clients) } : null;
}

function textOf({ day, usedMs }: CountedDay): string {
  return `${JSON.stringify({ format: 1, day, clients: [...usedMs] })}\n`;
}
