import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  type Stats,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { BrigError } from "../../../errors.js";
import { type OptionNames, refuseUnknownOptions } from "../../../known-options.js";
import { errnoOf, systemReason } from "../../../lib/errno.js";
import {
  acquireLock,
  type CurrentProcess,
  createLock,
  type FileLock,
  type LockHolder,
  readCurrentProcess,
} from "../../../lib/file-lock.js";
import { fullDiskOfBrig } from "../../../lib/files/full-disk.js";

/** The record of a session. */
export interface SessionLog {
  /** Null if nothing is recorded. */
  readonly path: string | null;
  /** Reason for missing records, in a sentence; null if none are missing. They are written as soon as possible. */
  readonly trouble: string | null;
  /** Throws `session.invalid` if the file cannot be created. After that it neither records nor throws. */
  append(record: SessionRecord): void;
  /** May be called twice. */
  close(): void;
}

/** One line of a session file, in Codex's format. Brig's own types start with `brig.`. */
export interface SessionRecord {
  type:
    | "session_meta"
    | "turn_context"
    | "response_item"
    | "compacted"
    | "event_msg"
    | `brig.${
        | "sandbox"
        /** The command that ran in it before the first call. */
        | "setup"
        | "call"
        /** The state of the workspace after a call. */
        | "restore_point"
        /** The user has undone a call. */
        | "undo"
        | "approval"
        /** The network of a sandbox. */
        | "egress"
        /** An attempt of a program in it to reach something. */
        | "egress_attempt"
        | "turn"
        /** Another model from here on. */
        | "model"
        | "tree"
        | "receipt"
        /** Records before this one could not be written. */
        | "gap"
        /** The lines before this one were copied from another session. */
        | "fork"}`;
  payload: Readonly<Record<string, unknown>>;
}

/** Place and session for which a file is created. */
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

/** Records nothing. */
export const noSessionLog: SessionLog = {
  path: null,
  trouble: null,
  append: () => undefined,
  close: () => undefined,
};

/**
 * Opens `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, which is created with its first record. Lines are
 * written at once, so a crash tears at most the last one. Only the user can read the folder, because outputs
 * contain secrets.
 */
export async function openSessionFile(session: SessionFileOptions): Promise<SessionLog> {
  refuseUnknownOptions(session, sessionFileOptionNames, { of: "openSessionFile" });
  return await newSessionFile(session);
}

/** Creates a session's file. `write` may be something other than the system call, for tests. */
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
 * Opens an existing session file to add records. A torn last line stays, and the next record starts on a new
 * line. Error: `session.busy` if another process is writing the file.
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
    throw new BrigError(`the session file ${path} cannot be written: ${systemReason(cause)}`, {
      code: "session.invalid",
      hint: "brig sessions fork makes a copy that can be",
      cause,
    });
  }
}

/** The path uses local time, as Codex does it. */
export function sessionPath(home: string, threadId: string, startedAt: Date): string {
  const pad = (number: number) => String(number).padStart(2, "0");
  const date = [startedAt.getFullYear(), pad(startedAt.getMonth() + 1), pad(startedAt.getDate())].map(String);
  const time = [startedAt.getHours(), startedAt.getMinutes(), startedAt.getSeconds()].map(pad);
  const name = `rollout-${date.join("-")}T${time.join("-")}-${threadId}.jsonl`;
  return join(home, "sessions", ...date, name);
}

/**
 * Creates missing parents, too. On a read-only file system, Node's `recursive` option reports ENOENT instead.
 */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const code = errnoOf(error);
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
  /** A function is called at the first record. */
  open: OpenFile | (() => OpenFile);
}

class SessionFile implements SessionLog {
  readonly #parts: SessionFileParts;
  #open: OpenFile | null;
  #isOver = false;
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
    return `the session file ${path} is incomplete, ${missing} missing at its end: ${systemReason(trouble.error)}`;
  }

  append(record: SessionRecord): void {
    if (this.#isOver) return;
    const isNew = this.#open === null;
    const { file } = this.#opened();
    file.append(this.#line(record), {
      gap: (count) => this.#line({ type: "brig.gap", payload: { lost_records: count } }),
    });
    if (isNew && file.isEmpty) this.#giveUp();
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#open?.file.close();
    this.#open?.lock.release();
  }

  #line(record: SessionRecord): string {
    return JSON.stringify({ timestamp: this.#parts.now().toISOString(), ...record });
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

  /** A session does not start without its first record; `--ephemeral` is for sessions without a record. */
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
    const disk = fullDiskOfBrig(cause, dirname(path));
    return new BrigError(`cannot create the session file ${path}: ${systemReason(cause)}`, {
      code: "session.invalid",
      hint: `${disk === undefined ? "" : "make room there, or "}set BRIG_HOME to a directory that can be written to, or keep no record with --ephemeral`,
      ...{ errno: errnoOf(cause), disk, cause },
    });
  }
}

/** Writes some of the bytes, from `at` on, and returns how many. */
type WriteBytes = (file: number, bytes: Uint8Array, at: number) => number;

/** Why lines are missing. */
type FileTrouble =
  | { kind: "failed"; error: unknown }
  /** The file was removed, so nobody would find what is written to it. */
  | { kind: "deleted" };

/** Lines that cannot be written wait for the next attempt. New lines beyond this limit are given up. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Creates a file that only the user can read. Throws if it exists. */
function createFile(path: string, write?: WriteBytes): AppendedFile {
  return new AppendedFile(openSync(path, "ax+", 0o600), write);
}

/** Opens an existing regular file. */
function appendToFile(path: string): AppendedFile {
  // No O_CREAT, because the file must exist; O_NONBLOCK, because opening a FIFO would wait for its other end.
  const { O_APPEND, O_RDWR, O_NONBLOCK } = constants;
  const file = openSync(path, O_APPEND | O_RDWR | O_NONBLOCK);
  if (fstatSync(file).isFile()) return new AppendedFile(file);
  closeSync(file);
  throw new Error("it is not a regular file");
}

/**
 * A file of lines that only grows. A line that could only be written in part is removed again and waits for
 * the next attempt. If it cannot be removed, the next line starts after a newline.
 */
class AppendedFile {
  readonly #file: number;
  readonly #write: WriteBytes;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #givenUp = 0;
  /** Whether the last line has no newline. */
  #isTorn: boolean;
  #trouble: FileTrouble | null = null;

  constructor(file: number, write: WriteBytes = writeSync) {
    this.#file = file;
    this.#write = write;
    this.#isTorn = !endsWithNewline(file);
  }

  get trouble(): FileTrouble | null {
    return this.#trouble;
  }

  get missingLines(): number {
    return this.#waiting.length + this.#givenUp;
  }

  get isEmpty(): boolean {
    return fstatSync(this.#file).size === 0;
  }

  /** Sets `trouble` instead of throwing. `gap` returns the line that stands for lines that were given up. */
  append(line: string, { gap }: { gap: (count: number) => string }): void {
    if (this.#trouble?.kind === "deleted") return;
    this.#enqueue(Buffer.from(`${line}\n`));
    this.#flush(gap);
  }

  close(): void {
    closeSync(this.#file);
  }

  #enqueue(line: Buffer): void {
    if (this.#givenUp > 0 || this.#waitingBytes + line.length > MAX_WAITING_BYTES) {
      this.#givenUp++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
  }

  #flush(gap: (count: number) => string): void {
    if (fstatSync(this.#file).nlink === 0) {
      this.#trouble = { kind: "deleted" };
      this.#waiting = [];
      return;
    }
    try {
      this.#writeWaiting();
      if (this.#givenUp > 0) this.#writeLine(Buffer.from(`${gap(this.#givenUp)}\n`));
      this.#givenUp = 0;
      this.#trouble = null;
    } catch (error) {
      this.#trouble = { kind: "failed", error };
    }
  }

  #writeWaiting(): void {
    let written = 0;
    try {
      for (const line of this.#waiting) {
        this.#writeLine(line);
        written++;
      }
    } finally {
      for (const line of this.#waiting.splice(0, written)) this.#waitingBytes -= line.length;
    }
  }

  #writeLine(line: Buffer): void {
    const bytes = this.#isTorn ? Buffer.concat([Buffer.from("\n"), line]) : line;
    const before = fstatSync(this.#file).size;
    let at = 0;
    try {
      while (at < bytes.length) at += this.#write(this.#file, bytes, at);
      this.#isTorn = false;
    } catch (error) {
      this.#removePart(before, at);
      throw error;
    }
  }

  /** Removes a partly written line, unless another process has written after it. */
  #removePart(sizeBefore: number, writtenBytes: number): void {
    if (writtenBytes === 0) return;
    try {
      if (fstatSync(this.#file).size !== sizeBefore + writtenBytes) this.#isTorn = true;
      else ftruncateSync(this.#file, sizeBefore);
    } catch {
      this.#isTorn = true;
    }
  }
}

function endsWithNewline(file: number): boolean {
  const { size }: Stats = fstatSync(file);
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  readSync(file, last, 0, 1, size - 1);
  return last[0] === NEWLINE;
}

/** Locks an existing session file for writing. Error: `session.busy`, which names the process that has it. */
export async function lockSessionFile(file: string, currentProcess: CurrentProcess): Promise<FileLock> {
  const outcome = await acquireLock(file, { currentProcess });
  if (outcome.kind === "held") return outcome.lock;
  throw busy(file, outcome.holder, currentProcess);
}

function busy(file: string, { owner, lockFile }: LockHolder, { processes }: CurrentProcess): BrigError {
  const isHere = owner.host === processes.host;
  return new BrigError(
    `the session ${basename(file)} is in use by process ${owner.pid}${isHere ? "" : ` on ${owner.host}`}`,
    {
      code: "session.busy",
      hint: isHere
        ? "wait for it to end, or go on in a copy: brig sessions fork"
        : `if that process is no more, remove ${lockFile}; or go on in a copy: brig sessions fork`,
    },
  );
}
