import { formatBytes } from "../../lib/bytes.js";

/**
 * A known reason why a command failed. Each is a fact that the kernel or brig has counted while it ran, and none is
 * a guess from its output. A fact that could also be about another command is not given.
 */
export type CallCause =
  /** The kernel killed a process of it, because the sandbox had reached its memory limit. Null: the size is unknown. */
  | { kind: "memory-limit"; limitBytes: number | null }
  /** The same below the sandbox's own limit: the machine, or something else that contains the sandbox, had no more memory. */
  | { kind: "machine-memory" }
  /** A process or thread could not be started. Null: because of a limit outside of the sandbox. */
  | { kind: "process-limit"; limit: number | null }
  /**
   * Its time limit has passed, and in this part of its time, from 0 to 1, the sandbox had used up the processors that
   * it may use, so that the kernel made it wait. Null: their number is unknown.
   */
  | { kind: "cpu-limit"; cpus: number | null; share: number }
  /** A directory in memory (tmpfs) is full. */
  | ({ kind: "full-directory" } & FullPlace)
  /** The disk that holds this directory is full. */
  | ({ kind: "disk-full" } & FullPlace)
  /** The allow-list refused a connection of one of its processes. `denial` is the kind of a `Denial`. */
  | { kind: "network-rule"; host: string; port: number | null; denial: string };

/** A directory in memory or a disk without room, and what it has none for. */
interface FullPlace {
  path: string;
  lacks: "bytes" | "files";
  /** The most bytes or files that there can be at all. */
  limit: number;
  /** It was full when the command began, and files came or went there meanwhile. */
  wasFull: boolean;
}

/** One sentence for people and models, without its full stop. */
export function describeCause(cause: CallCause): string {
  switch (cause.kind) {
    case "memory-limit": {
      const limit = cause.limitBytes === null ? "" : ` of ${formatBytes(cause.limitBytes)}`;
      return `the sandbox ran out of memory: the kernel killed a process of this command at the limit${limit}`;
    }
    case "machine-memory":
      return "the kernel killed a process of this command although the sandbox was below its memory limit, because the machine or a limit around the sandbox had no more memory";
    case "process-limit":
      return cause.limit === null
        ? "a process could not be started because of a limit outside of the sandbox"
        : `a process could not be started because the sandbox had reached its limit of ${cause.limit} processes and threads`;
    case "cpu-limit": {
      const limit =
        cause.cpus === null ? "processors" : `${cause.cpus} ${cause.cpus === 1 ? "processor" : "processors"}`;
      return `the sandbox's limit of ${limit} slowed this command down for ${Math.round(cause.share * 100)} % of its time`;
    }
    case "full-directory":
      return `${shownPath(cause.path)} is full: ${whatIsUsed(cause)}`;
    case "disk-full":
      return `the disk that holds ${shownPath(cause.path)} is full: ${whatIsUsed(cause)}`;
    case "network-rule":
      return `the allow-list refused a connection to ${cause.port === null ? cause.host : `${cause.host}:${cause.port}`}`;
    default:
      return cause satisfies never;
  }
}

function whatIsUsed({ lacks, limit, wasFull }: FullPlace): string {
  const used = lacks === "bytes" ? `${formatBytes(limit)} are used` : `there are ${limit} files`;
  return wasFull ? `${used}, and it was full already when this command began` : used;
}

/** The name of a directory may contain any character but NUL. */
function shownPath(path: string): string {
  if (/^[\x21-\x7e]+$/.test(path)) return path;
  const escaped = (character: string) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  return JSON.stringify(path).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);
}

/**
 * The sentences that follow a command's own output. What the allow-list refused is in the output already, with more
 * words.
 */
export function causeSentences(causes: readonly CallCause[]): string[] {
  return causes.filter(({ kind }) => kind !== "network-rule").map(describeCause);
}
