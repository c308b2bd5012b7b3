import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { BrigError } from "../errors.js";

/** Where a session's records go. */
export interface SessionLog {
  /** Null where nothing is kept. */
  readonly path: string | null;
  append(record: SessionRecord): void;
  close(): void;
}

/** One line of a session file. Types of our own start with `brig.`. */
export interface SessionRecord {
  type: "session_meta" | "turn_context" | "response_item" | "event_msg" | "brig.sandbox" | "brig.call";
  payload: Readonly<Record<string, unknown>>;
}

export interface SessionFileOptions {
  /** `$BRIG_HOME`. */
  home: string;
  threadId: string;
  now: () => Date;
  /** Writes some of the bytes, from `at` on, and tells how many. Default: the system call. */
  write?: (file: number, bytes: Uint8Array, at: number) => number;
}

/** Keeps nothing. */
export const noSessionLog: SessionLog = { path: null, append: () => undefined, close: () => undefined };

/**
 * Opens `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`. A line is written at once and as a whole, so what a crash leaves ends
 * with at most one torn line, and a line after a torn one starts anew. The folder is the user's alone: outputs hold secrets.
 * A folder that cannot be written to is `session.invalid`.
 */
export function openSessionFile({ home, threadId, now, write = writeSync }: SessionFileOptions): SessionLog {
  const path = sessionPath(home, threadId, now());
  const file = open(path);
  let isTorn = false;
  return {
    path,
    append(record) {
      const line = JSON.stringify({ timestamp: now().toISOString(), ...record });
      const bytes = Buffer.from(`${isTorn ? "\n" : ""}${line}\n`);
      isTorn = true;
      for (let at = 0; at < bytes.length; ) at += write(file, bytes, at);
      isTorn = false;
    },
    close() {
      closeSync(file);
    },
  };
}

function sessionPath(home: string, threadId: string, startedAt: Date): string {
  const pad = (number: number) => String(number).padStart(2, "0");
  const date = [startedAt.getFullYear(), pad(startedAt.getMonth() + 1), pad(startedAt.getDate())] as const;
  const time = [startedAt.getHours(), startedAt.getMinutes(), startedAt.getSeconds()].map(pad);
  return join(
    home,
    "sessions",
    ...date.map(String),
    `rollout-${date.join("-")}T${time.join("-")}-${threadId}.jsonl`,
  );
}

function open(path: string): number {
  try {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    return openSync(path, "ax", 0o600);
  } catch (cause) {
    throw new BrigError(`cannot create the session file ${path}`, {
      code: "session.invalid",
      hint: "set BRIG_HOME to a directory that can be written to",
      cause,
    });
  }
}
