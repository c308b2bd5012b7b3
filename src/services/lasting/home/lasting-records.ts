import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { errnoOf } from "../../../lib/errno.js";
import { makeDirectorySync } from "../../../lib/files/make-directory.js";
import {
  nullable,
  nullish,
  object,
  oneOf,
  positiveInteger,
  readOrNull,
  type Shaped,
  string,
  stringLike,
} from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";

const NAME = /^[a-z0-9][a-z0-9_.-]{0,99}$/;

/** Why a lasting sandbox has ended. */
const END_REASONS = ["stopped", "idle", "max-life", "ended", "owner-stopped", "owner-killed"] as const;
export type EndReason = (typeof END_REASONS)[number];

const recordShape = object({
  name: stringLike(NAME),
  /** The id of the sandbox, which its container has too. */
  id: stringLike(/^[0-9a-f-]{36}$/),
  state: oneOf("running", "stopped"),
  /** Null while it runs. */
  reason: nullable(oneOf(...END_REASONS)),
  /** The id of the snapshot that has what it changed in its copy-on-write workspace, once it has ended. Default: nothing. */
  changes: nullish(string),
  owner: object({
    pid: positiveInteger,
    startedAt: nullable(string),
    bootId: nullable(string),
    host: string,
  }),
  about: object({
    mode: string,
    network: string,
    image: string,
    workspace: nullable(string),
    createdAt: string,
  }),
});

type RecordFields = Shaped<typeof recordShape>;

/** A sandbox with a name, from `brig up` until `brig rm`. */
export type LastingRecord = Omit<RecordFields, "changes"> & Partial<Pick<RecordFields, "changes">>;

function isName(text: string): boolean {
  return NAME.test(text);
}

/** Error: `usage.invalid`. */
export function requireName(text: string): void {
  if (isName(text)) return;
  throw new BrigError(`${JSON.stringify(text)} cannot be the name of a sandbox`, {
    code: "usage.invalid",
    hint: "use lower-case letters, digits, dots, dashes and underscores, with a letter or a digit first",
  });
}

export function lastingDirectory(brigHome: string): string {
  return join(brigHome, "lasting");
}

/** The file whose lock the owner has. */
export function ownerLock(brigHome: string): string {
  return join(lastingDirectory(brigHome), "owner");
}

/** Says which process starts another owner when the owner is killed. */
export function watcherFile(brigHome: string): string {
  return join(lastingDirectory(brigHome), ".watcher");
}

/** All readable records, the oldest sandbox first. */
export function readLasting(brigHome: string): LastingRecord[] {
  const directory = lastingDirectory(brigHome);
  const names = namesIn(directory).flatMap((file) => (file.endsWith(".json") ? [file.slice(0, -5)] : []));
  return names
    .filter(isName)
    .flatMap((name) => {
      const record = readOne(join(directory, `${name}.json`));
      return record?.name === name ? [record] : [];
    })
    .toSorted((one, other) => (one.about.createdAt < other.about.createdAt ? -1 : 1));
}

/**
 * The sandbox of this name, or of this id, or of the only id that begins like this. Errors: `sandbox.unknown`; `usage.invalid` if several
 * ids do.
 */
export function findLasting<T extends { name: string; id: string }>(known: readonly T[], wanted: string): T {
  const exact = known.find(({ name }) => name === wanted) ?? known.find(({ id }) => id === wanted);
  if (exact !== undefined) return exact;
  const starting = wanted === "" ? [] : known.filter(({ id }) => id.startsWith(wanted));
  const [first, second] = starting;
  if (first === undefined) throw unknownSandbox(wanted);
  if (second === undefined) return first;
  throw new BrigError(`the ids of ${starting.length} sandboxes begin with ${JSON.stringify(wanted)}`, {
    code: "usage.invalid",
    hint: `write more of it, or a name: ${starting
      .slice(0, 10)
      .map(({ name }) => name)
      .join(", ")}`,
  });
}

function unknownSandbox(wanted: string): BrigError {
  return new BrigError(`no lasting sandbox is called ${JSON.stringify(wanted)}`, {
    code: "sandbox.unknown",
    hint: "brig ps --all lists them, and brig up starts one",
  });
}

/** Written whole or not at all. Errors: those of the file system. */
export function writeLasting(brigHome: string, record: LastingRecord): void {
  const directory = lastingDirectory(brigHome);
  const temporary = join(directory, `.${record.name}.${randomBytes(6).toString("hex")}.tmp`);
  makeDirectorySync(directory, { mode: 0o700 });
  try {
    writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600, flag: "wx" });
    renameSync(temporary, join(directory, `${record.name}.json`));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** With the output that is kept. */
export function removeLasting(brigHome: string, name: string): void {
  requireName(name);
  rmSync(logFile(brigHome, name), { force: true });
  rmSync(join(lastingDirectory(brigHome), `${name}.json`), { force: true });
}

/** The latest output of the commands of a sandbox that has ended, as frames. */
export function logFile(brigHome: string, name: string): string {
  return join(lastingDirectory(brigHome), `${name}.log`);
}

/** Errors: those of the file system, and then there is none. */
export function writeLog(brigHome: string, name: string, frames: readonly Uint8Array[]): void {
  const file = logFile(brigHome, name);
  rmSync(file, { force: true });
  try {
    writeFileSync(file, Buffer.concat(frames), { mode: 0o600, flag: "wx" });
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** Null for what is no record, or gone. */
function readOne(file: string): LastingRecord | null {
  try {
    return readOrNull(recordShape, parseJson(readFileSync(file, "utf8")));
  } catch {
    return null;
  }
}
