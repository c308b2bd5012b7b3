import { randomBytes } from "node:crypto";
import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import { fullDiskOfBrig } from "../../../lib/files/full-disk.js";
import { makeDirectorySync } from "../../../lib/files/make-directory.js";
import { readTextNow } from "../../../lib/files/read-text-now.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { SANDBOX_MODES } from "../../../sandbox/index.js";
import { sandboxSchema } from "../wire/schemas.js";

/** What a sandbox was opened with, so that another service makes the same settings of it. */
const openingSchema = z.object({
  image: z.string(),
  mode: z.enum(SANDBOX_MODES),
  /** The network that it was opened with, which may be another one by now. */
  network: z.string(),
  runtime: z.string().nullable(),
  limits: z.record(z.string(), z.number()),
  env: z.record(z.string(), z.string()),
  /** In place of those of the mode. */
  user: z.object({ user: z.string(), home: z.string() }).nullable(),
  /** The directory of the host below a copy-on-write workspace, and where that is in the sandbox. */
  workspace: z.object({ directory: z.string(), path: z.string() }).nullable(),
});
export type Opening = z.infer<typeof openingSchema>;

/** What the next service has to know of a sandbox, besides what brig needs to go on with any. */
const keptSchema = z.object({
  /** Goes up when a later version could not read what this one writes. */
  format: z.literal(1),
  client: z.string(),
  /** The `Idempotency-Key` of its create, and what the body was. */
  key: z.object({ key: z.string(), bodyHash: z.string() }).nullable(),
  /** The variables that its client has given it. */
  env: z.record(z.string(), z.string()),
  sandbox: sandboxSchema,
  /** Its forks live so long. */
  maxLifeMs: z.number(),
  opening: openingSchema,
  /** Its processes are frozen. */
  isPaused: z.boolean().default(false),
  /** It is paused when its time is over, and not removed. */
  pausesAtExpiry: z.boolean().default(false),
  /** What another protocol of the service knows of it, sealed. Default: nothing. */
  protocol: z.string().nullish(),
});
export type KeptRecord = z.infer<typeof keptSchema>;

const FILE = "service.json";
/** The variables are the most of it: a request has 16 MiB, of which each byte may be written as six. */
const MAX_BYTES = 128 * 1024 * 1024;

/** Written whole or not at all, readable only for this user. Error: `store.failed`, and then there is no record any more. */
export function writeKept(directory: string, record: Omit<KeptRecord, "format">): void {
  const temporary = join(directory, `.${FILE}.${randomBytes(6).toString("hex")}`);
  try {
    makeDirectorySync(directory, { mode: 0o700 });
    writeFileSync(temporary, `${JSON.stringify({ format: 1, ...record })}\n`, { mode: 0o600, flag: "wx" });
    renameSync(temporary, join(directory, FILE));
  } catch (cause) {
    rmSync(temporary, { force: true });
    // One that is out of date could let the sandbox do what its client has taken back.
    forgetKept(directory);
    throw new BrigError(`the sandbox cannot be recorded in ${directory}: ${systemReason(cause)}`, {
      code: "store.failed",
      disk: fullDiskOfBrig(cause, directory),
      cause,
    });
  }
}

/** Null if there is none that this version can read. */
export function readKept(directory: string): KeptRecord | null {
  const text = readTextNow(join(directory, FILE), MAX_BYTES);
  const parsed = keptSchema.safeParse(text === null ? undefined : parseJson(text));
  return parsed.success ? parsed.data : null;
}

/** The next service ends it. */
export function forgetKept(directory: string): void {
  rmSync(join(directory, FILE), { force: true });
}

export function removeKept(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
}

/** The directories of all sandboxes in that of a service. */
export function keptDirectories(home: string): string[] {
  try {
    return readdirSync(home)
      .filter((name) => name.startsWith(PREFIX))
      .map((name) => join(home, name))
      .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

const PREFIX = "sandbox-";

/** A name for one more, which is not there yet. */
export function newKeptDirectory(home: string): string {
  return join(home, `${PREFIX}${randomBytes(16).toString("hex")}`);
}
