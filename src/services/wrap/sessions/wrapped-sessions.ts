import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { BrigError, invalidUsage } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { errnoOf } from "../../../lib/errno.js";
import { acquireLock, type FileLock, holderOf } from "../../../lib/file-lock.js";
import { writeDurably } from "../../../lib/files/durable-file.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { readHostProcesses } from "../../../lib/owner.js";
import { parseRecord, type SessionRecord, writeRecord } from "./session-record.js";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MAX_RECORD_BYTES = 1024 * 1024;

export interface ListedSession {
  name: string;
  isRunning: boolean;
  /** Null if it cannot be read. */
  record: SessionRecord | null;
  /** The agent's home on the host. */
  home: string;
}

/** A named session that this process alone uses, until it is disposed of. */
export class WrappedSession implements Disposable {
  readonly name: string;
  readonly #directory: string;
  readonly #lock: FileLock;
  #record: SessionRecord | null;

  constructor(
    name: string,
    { directory, lock, record }: { directory: string; lock: FileLock; record: SessionRecord | null },
  ) {
    this.name = name;
    this.#directory = directory;
    this.#lock = lock;
    this.#record = record;
  }

  /** Null for a new session. */
  get record(): SessionRecord | null {
    return this.#record;
  }

  /** The directory on the host that is the agent's home. */
  get home(): string {
    return join(this.#directory, "home");
  }

  async save(record: SessionRecord): Promise<void> {
    await writeDurably(recordFile(this.#directory), writeRecord(record));
    this.#record = record;
  }

  /** Releases the session. The directory of a session that could not begin is removed. */
  [Symbol.dispose](): void {
    if (this.#record === null) rmSync(this.#directory, { recursive: true, force: true });
    this.#lock.release();
  }
}

/** Creates a session, or opens an existing one. Errors: `usage.invalid` for the name, `session.busy`, `session.invalid`. */
export async function openSession(brigHome: string, name: string): Promise<WrappedSession> {
  const directory = directoryOf(brigHome, name);
  await makeDirectory(join(directory, "home"), { mode: 0o700 });
  const lock = await lockSession(directory, name);
  try {
    return new WrappedSession(name, { directory, lock, record: await readRecord(directory, name) });
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Opens a session that was begun before. Errors: those of `openSession`, `session.unknown`. */
export async function reopenSession(
  brigHome: string,
  name: string,
): Promise<WrappedSession & { record: SessionRecord }> {
  requireKnown(brigHome, name);
  const session = await openSession(brigHome, name);
  if (session.record !== null) return session as WrappedSession & { record: SessionRecord };
  session[Symbol.dispose]();
  throw unknown(name);
}

/** Lists all sessions in the order of their names. */
export async function listSessions(brigHome: string): Promise<ListedSession[]> {
  const names = await readdir(join(brigHome, "wrapped")).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  });
  const processes = await readHostProcesses(hostname());
  const begun = names.filter(
    (name) => NAME.test(name) && existsSync(recordFile(directoryOf(brigHome, name))),
  );
  const listed = begun.toSorted().map(async (name) => {
    const directory = directoryOf(brigHome, name);
    const holder = await holderOf(recordFile(directory), processes);
    const record = await readRecord(directory, name).catch(() => null);
    return { name, isRunning: holder !== null, record, home: join(directory, "home") };
  });
  return await Promise.all(listed);
}

/**
 * Removes a session with its agent's home. Errors: `session.unknown`, `session.busy`; `session.invalid` if a part
 * of it cannot be removed.
 */
export async function removeSession(brigHome: string, name: string): Promise<void> {
  requireKnown(brigHome, name);
  const directory = directoryOf(brigHome, name);
  using _lock = await lockSession(directory, name);
  // It is renamed first, so that nobody opens a session that is only partly there.
  const doomed = join(brigHome, "wrapped", `.removed-${randomBytes(6).toString("hex")}`);
  await rename(directory, doomed);
  try {
    await rm(doomed, { recursive: true });
  } catch (cause) {
    throw new BrigError(
      `the home of the session ${name} cannot be removed completely: ${errnoOf(cause) ?? cause}`,
      {
        code: "session.invalid",
        hint: `the rest is in ${doomed}; chmod -R u+rwX may be needed before it can be removed`,
        cause,
      },
    );
  }
}

async function lockSession(directory: string, name: string): Promise<FileLock> {
  const outcome = await acquireLock(recordFile(directory));
  if (outcome.kind === "held") return outcome.lock;
  throw new BrigError(`the session ${name} is in use by process ${outcome.holder.owner.pid}`, {
    code: "session.busy",
    hint: "wait until that has ended, or use another --name",
  });
}

/** Null if the session has no record yet. Error: `session.invalid`. */
async function readRecord(directory: string, name: string): Promise<SessionRecord | null> {
  const path = recordFile(directory);
  const invalid = (reason: string, cause: unknown) =>
    new BrigError(`the session ${name} cannot be read: ${path} ${reason}`, {
      code: "session.invalid",
      cause,
    });
  const file = await readTextFile(path, MAX_RECORD_BYTES);
  if (file.kind === "missing") return null;
  if (file.kind === "unreadable") throw invalid(file.reason, file.cause);
  try {
    return parseRecord(file.text);
  } catch (cause) {
    throw invalid(`is not a session: ${cause instanceof Error ? cause.message : cause}`, cause);
  }
}

function requireKnown(brigHome: string, name: string): void {
  if (!existsSync(recordFile(directoryOf(brigHome, name)))) throw unknown(name);
}

function unknown(name: string): BrigError {
  return new BrigError(`there is no wrapped session ${JSON.stringify(name)}`, {
    code: "session.unknown",
    hint: "brig wrap --list shows them; brig wrap --name NAME -- COMMAND begins one",
  });
}

function directoryOf(brigHome: string, name: string): string {
  if (NAME.test(name)) return join(brigHome, "wrapped", name);
  throw invalidUsage(
    `${JSON.stringify(name)} cannot be the name of a session`,
    "use letters, digits, dots, underscores and hyphens, at most 64, and begin with a letter or digit",
  );
}

function recordFile(directory: string): string {
  return join(directory, "session.json");
}
