import { BrigError } from "../../errors.js";
import { namesByNumber } from "../../lib/names-by-number.js";
import { protocolError } from "../channel/frames.js";
import {
  CAUSE_HEAD_BYTES,
  CauseFlag,
  CauseKind,
  EXIT_HEAD_BYTES,
  ExitFlag,
  ExitKind,
  Stage,
} from "../channel/protocol.js";
import { type CallCause, describeCause } from "../output/call-cause.js";
import type { CommandEnd, StartFailure } from "../output/command-end.js";
import { errnoName } from "./errno-names.js";
import { signalName } from "./signals.js";

const TIMEOUT_EXIT_CODE = 124;
const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

const kinds = namesByNumber(ExitKind);
const stages = namesByNumber(Stage);

/** A parsed EXIT frame. */
export interface ExitRecord
  extends Pick<CommandEnd, "timedOut" | "outOfMemory" | "treeEnded" | "causes" | "durationMs" | "usage"> {
  kind: keyof typeof ExitKind;
  code: number;
  /** A Linux errno, or 0. */
  errno: number;
  stage: keyof typeof Stage;
  /** Not even SIGKILL ended the whole process tree. */
  treeLeft: boolean;
  /** Processes that earlier commands had left running held the memory that this one lacked, and were ended. */
  leftoversEnded: boolean;
  /** The result of a file operation. */
  result: Buffer;
}

export function parseExit(payload: Buffer): ExitRecord {
  if (payload.length < EXIT_HEAD_BYTES) throw protocolError(`an EXIT of ${payload.length} bytes`);
  const kind = kinds.get(payload.readUInt8(0));
  const stage = stages.get(payload.readUInt32LE(8));
  if (!kind || !stage) throw protocolError("an EXIT of unknown kind");
  const flags = payload.readUInt8(1);
  const rest = payload.subarray(EXIT_HEAD_BYTES);
  const isOfFile = kind === "file" || kind === "socket";
  return {
    kind,
    stage,
    code: payload.readUInt16LE(2),
    errno: payload.readUInt32LE(4),
    timedOut: (flags & ExitFlag.timedOut) !== 0,
    outOfMemory: (flags & ExitFlag.outOfMemory) !== 0,
    treeLeft: (flags & ExitFlag.treeLeft) !== 0,
    treeEnded: (flags & ExitFlag.treeEnded) !== 0,
    leftoversEnded: (flags & ExitFlag.leftoversEnded) !== 0,
    usage: {
      userMs: Number(payload.readBigUInt64LE(12)) / 1000,
      systemMs: Number(payload.readBigUInt64LE(20)) / 1000,
      maxRssBytes: Number(payload.readBigUInt64LE(28)),
    },
    durationMs: Number(payload.readBigUInt64LE(36)) / 1000,
    result: Buffer.from(rest),
    causes: isOfFile || rest.length === 0 ? [] : parseCauses(rest),
  };
}

/** Whether nothing ran because no process, memory or terminal was available for it. */
export function isWithoutRoom(payload: Buffer): boolean {
  if (payload.length < EXIT_HEAD_BYTES || kinds.get(payload.readUInt8(0)) !== "not-started") return false;
  const stage = stages.get(payload.readUInt32LE(8));
  return stage === "fork" || (stage === "streams" && errnoName(payload.readUInt32LE(4)) === "ENOSPC");
}

const ENDED = "brig: processes left running by earlier commands were ended";

/** Notes that follow a command's own output if processes of earlier commands had to be ended, so that it or the next one can run. */
export const LEFTOVERS_ENDED = {
  beforeStart: `${ENDED}, because no further process could be started\n`,
  forMemory: `${ENDED}, because they held most of the sandbox's memory\n`,
} as const;

/** Exit codes are those of a shell: 128 + n for signal n, 124 for a timeout, 126 and 127 if it could not be started. */
export function exitStatus(record: ExitRecord, program: string): CommandEnd {
  const { timedOut, outOfMemory, treeEnded, causes, durationMs, usage } = record;
  const bySignal = record.kind === "signalled" || record.kind === "lost";
  const startFailure = record.kind === "not-started" ? startFailureOf(record, program) : null;
  const ownCode = bySignal ? 128 + record.code : record.code;
  const startCode = record.stage === "exec" && isNotFound(record) ? NOT_FOUND : NOT_EXECUTABLE;
  return {
    exitCode: timedOut ? TIMEOUT_EXIT_CODE : startFailure ? startCode : ownCode,
    signal: bySignal ? signalName(record.code) : null,
    timedOut,
    outOfMemory,
    treeEnded,
    causes,
    durationMs,
    usage,
    startFailure,
  };
}

const isNotFound = ({ errno }: ExitRecord) => errnoName(errno) === "ENOENT" || errnoName(errno) === "ENOTDIR";

function startFailureOf(record: ExitRecord, program: string): StartFailure {
  const errno = errnoName(record.errno);
  return { stage: record.stage, errno, message: describeStartFailure(record, program) };
}

function describeStartFailure(record: ExitRecord, program: string): string {
  const name = errnoName(record.errno);
  if (record.stage === "fork") {
    const [cause] = record.causes;
    const reason = cause ? describeCause(cause) : "the sandbox's process or memory limit is reached";
    return `no process can be started: ${name} (${reason})`;
  }
  if (record.stage === "streams") return `no stream for the command can be opened: ${name}`;
  if (isNotFound(record)) return `${program}: command not found`;
  if (name === "EACCES") return `${program}: permission denied`;
  return `${program}: cannot be executed: ${name}`;
}

/** Returns an error for a failed start that is the caller's mistake, or null. */
export function startError(
  record: ExitRecord,
  request: { argv: readonly string[]; cwd: string },
): BrigError | null {
  if (record.kind !== "not-started") return null;
  const name = errnoName(record.errno);
  if (record.stage === "cwd")
    return new BrigError(`the working directory ${request.cwd} cannot be entered: ${name}`, {
      code: "exec.bad-cwd",
      errno: name,
      hint: "it must exist inside the sandbox; only the workspace and the added directories of the host are there",
    });
  if (name === "E2BIG")
    return new BrigError("the arguments and the environment together are too long for the kernel", {
      code: "exec.invalid",
      errno: name,
      hint: "pass large data through stdin or a file",
    });
  if (record.stage === "request") return protocolError(`it refused a request: ${name}`);
  return null;
}

const causeKinds = namesByNumber(CauseKind);

interface CauseRecord {
  kind: keyof typeof CauseKind;
  flags: number;
  /** The limit in bytes, processes or files; null if it is not known. */
  limit: number | null;
  /** The share of the command's time, in thousandths. */
  share: number;
  path: string;
}

/** Reads what follows the head of a failed command's EXIT. Error: `protocol.invalid`. */
export function parseCauses(bytes: Buffer): CallCause[] {
  const causes: CallCause[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + CAUSE_HEAD_BYTES;
    if (end > bytes.length) throw protocolError("a cause of a failure that is cut off");
    const pathEnd = end + bytes.readUInt16LE(at + 2);
    const kind = causeKinds.get(bytes.readUInt8(at));
    if (pathEnd > bytes.length || !kind) throw protocolError("a cause of a failure that cannot be read");
    const limit = Number(bytes.readBigUInt64LE(at + 4));
    causes.push(
      causeOf({
        kind,
        flags: bytes.readUInt8(at + 1),
        limit: limit === 0 || !Number.isSafeInteger(limit) ? null : limit,
        share: bytes.readUInt16LE(at + 12),
        path: bytes.toString("utf8", end, pathEnd),
      }),
    );
    at = pathEnd;
  }
  return causes;
}

function causeOf({ kind, flags, limit, share, path }: CauseRecord): CallCause {
  switch (kind) {
    case "memory":
      return flags & CauseFlag.outside
        ? { kind: "machine-memory" }
        : { kind: "memory-limit", limitBytes: limit };
    case "processes":
      return { kind: "process-limit", limit: flags & CauseFlag.outside ? null : limit };
    case "cpu":
      return {
        kind: "cpu-limit",
        cpus: limit === null ? null : limit / 1000,
        share: Math.min(share / 1000, 1),
      };
    case "fullMemory":
    case "fullDisk":
      return {
        kind: kind === "fullMemory" ? "full-directory" : "disk-full",
        path,
        lacks: flags & CauseFlag.files ? "files" : "bytes",
        limit: limit ?? 0,
        wasFull: (flags & CauseFlag.before) !== 0,
      };
    default:
      return kind satisfies never;
  }
}
