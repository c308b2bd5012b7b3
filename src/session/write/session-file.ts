import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import { type OptionNames, refuseUnknownOptions } from "../../known-options.js";
import { createLock, type FileLock, readCurrentProcess } from "../../lib/file-lock.js";
import { type AppendedFile, appendToFile, createFile, type WriteBytes } from "./appended-file.js";
import { lockSessionFile } from "./session-lock.js";

/** Where a session's records go. */
export interface SessionLog {
  /** Null where nothing is kept. */
  readonly path: string | null;
  /** Why the record is not complete, as a sentence; null while it is. What is missing is written as soon as it can be. */
  readonly trouble: string | null;
  /** Throws `session.invalid` where the file cannot be created; from then on nothing is kept, and nothing thrown. */
  append(record: SessionRecord): void;
  /** May be done twice. */
  close(): void;
}

/** One line of a session file. Types of our own start with `brig.`. */
export interface SessionRecord {
  type:
    | "session_meta"
    | "turn_context"
    | "response_item"
    | "compacted"
    | "event_msg"
    | `brig.${
        | "sandbox"
        | "call"
        | "approval"
        | "egress"
        | "turn"
        | "tree"
        | "receipt"
        /** So many records before this one could not be written. */
        | "gap"
        /** What comes before it is another session's. */
        | "fork"}`;
  payload: Readonly<Record<string, unknown>>;
}

/** Where a session's file is to be, and in whose name. */
export interface SessionFileOptions {
  /** `$BRIG_HOME`. */
  home: string;
  threadId: string;
  now: () => Date;
}

const sessionFileOptionNames: OptionNames<SessionFileOptions> = {
  home: true,
  threadId: true,
  now: true,
};

/** Keeps nothing. */
export const noSessionLog: SessionLog = {
  path: null,
  trouble: null,
  append: () => undefined,
  close: () => undefined,
};

/**
 * `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, created with its first record. A line is written at once and as a whole, so what a
 * crash leaves ends with at most one torn line. The folder is the user's alone: outputs hold secrets.
 */
export async function openSessionFile(session: SessionFileOptions): Promise<SessionLog> {
  refuseUnknownOptions(session, sessionFileOptionNames, { of: "openSessionFile" });
  return await newSessionFile(session);
}

/** For tests, `write` may be something other than the system call. */
export async function newSessionFile(
  { home, threadId, now }: SessionFileOptions,
  write?: WriteBytes,
): Promise<SessionLog> {
  const currentProcess = await readCurrentProcess();
  const path = sessionPath(home, threadId, now());
  return new SessionFile({
    path,
    now,
    open() {
      makeFolder(dirname(path));
      const lock = createLock(path, currentProcess);
      try {
        return { file: createFile(path, write), lock };
      } catch (error) {
        lock.release();
        throw error;
      }
    },
  });
}

/**
 * Goes on with a session's file; a torn last line stays, and the next one starts anew. One that another process writes is
 * `session.busy`.
 */
export async function continueSessionFile(
  path: string,
  { now }: Pick<SessionFileOptions, "now">,
): Promise<SessionLog> {
  try {
    const lock = await lockSessionFile(path, await readCurrentProcess());
    try {
      const file = appendToFile(path);
      return new SessionFile({ path, now, open: { file, lock } });
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (cause) {
    if (cause instanceof BrigError) throw cause;
    throw new BrigError(`the session file ${path} cannot be written: ${reasonOf(cause)}`, {
      code: "session.invalid",
      hint: "brig sessions fork makes a copy that can be",
      cause,
    });
  }
}

/** Where a session's file lies. The time is the local one. */
export function sessionPath(home: string, threadId: string, startedAt: Date): string {
  const pad = (number: number) => String(number).padStart(2, "0");
  const date = [startedAt.getFullYear(), pad(startedAt.getMonth() + 1), pad(startedAt.getDate())].map(String);
  const time = [startedAt.getHours(), startedAt.getMinutes(), startedAt.getSeconds()].map(pad);
  const name = `rollout-${date.join("-")}T${time.join("-")}-${threadId}.jsonl`;
  return join(home, "sessions", ...date, name);
}

/** With all above it. Node's own way calls a read-only file system a missing file. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const code = codeOf(error);
    if (code === "EEXIST") return;
    if (code !== "ENOENT" || dirname(path) === path) throw error;
    makeFolder(dirname(path));
    makeFolder(path);
  }
}

interface OpenFile {
  file: AppendedFile;
  lock: FileLock;
}

interface SessionFileParts {
  path: string;
  now: () => Date;
  /** Opened already, or how to, when there is something to keep. */
  open: OpenFile | (() => OpenFile);
}

class SessionFile implements SessionLog {
  readonly #parts: SessionFileParts;
  #open: OpenFile | null;
  #isOver = false;
  #isClosed = false;
  #hasFailed = false;

  constructor(parts: SessionFileParts) {
    this.#parts = parts;
    this.#open = typeof parts.open === "function" ? null : parts.open;
  }

  get path(): string | null {
    return this.#hasFailed ? null : this.#parts.path;
  }

  get trouble(): string | null {
    const { path } = this.#parts;
    const { trouble, missingLines = 0 } = this.#open?.file ?? {};
    if (trouble === null || trouble === undefined) return null;
    if (trouble.kind === "deleted")
      return `the session file ${path} was deleted while it was in use: nothing more is kept`;
    const missing = missingLines === 1 ? "1 record is" : `${missingLines} records are`;
    return `the session file ${path} is incomplete, ${missing} missing at its end: ${reasonOf(trouble.error)}`;
  }

  append(record: SessionRecord): void {
    if (this.#isOver) return;
    const { now } = this.#parts;
    const line = JSON.stringify({ timestamp: now().toISOString(), ...record });
    const isNew = this.#open === null;
    const { file } = this.#opened();
    file.append(line, { gap: (count) => JSON.stringify(gapRecord(count, now())) });
    if (isNew && file.isEmpty) this.#giveUp();
  }

  close(): void {
    this.#isOver = true;
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#open?.file.close();
    this.#open?.lock.release();
  }

  #opened(): OpenFile {
    const { open } = this.#parts;
    try {
      this.#open ??= typeof open === "function" ? open() : open;
      return this.#open;
    } catch (cause) {
      throw this.#failure(cause);
    }
  }

  /** Before anything has happened it is no use to go on: whoever wants no record can say so. */
  #giveUp(): void {
    const trouble = this.#open?.file.trouble;
    rmSync(this.#parts.path, { force: true });
    this.close();
    throw this.#failure(trouble?.kind === "failed" ? trouble.error : undefined);
  }

  #failure(cause: unknown): BrigError {
    this.#isOver = true;
    this.#hasFailed = true;
    this.#open = null;
    const { path } = this.#parts;
    return new BrigError(`cannot create the session file ${path}: ${reasonOf(cause)}`, {
      code: "session.invalid",
      hint: "set BRIG_HOME to a directory that can be written to, or keep no record with --ephemeral",
      cause,
    });
  }
}

function gapRecord(lostRecords: number, now: Date) {
  return {
    timestamp: now.toISOString(),
    type: "brig.gap",
    payload: { lost_records: lostRecords },
  };
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EEXIST: "it exists already",
  ENOENT: "no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  EFBIG: "the file is too large",
  EIO: "input/output error",
};

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function reasonOf(error: unknown): string {
  return reasons[codeOf(error)] ?? (error instanceof Error ? error.message : String(error));
}
