import type { Readable } from "node:stream";
import { isBrigError } from "../../errors.js";
import type { CommandEnd } from "../../sandbox/index.js";
import type { ToolProcess, ToolSandbox, ToolSpawnOptions } from "../tool-sandbox.js";

const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

type OnChunk = (chunk: Uint8Array) => void;

interface OutputReaders {
  stdout: OnChunk;
  stderr: OnChunk;
}

/** Runs a program to its end, without input. An abort rejects with the signal's reason. */
export async function runProcess(
  sandbox: ToolSandbox,
  { argv, ...options }: ToolSpawnOptions & { argv: readonly string[] },
  readers: OutputReaders,
): Promise<CommandEnd> {
  const { signal } = options;
  try {
    const process = await sandbox.spawn(argv, { ...options, stdin: "closed" });
    const reading = [eachChunk(process.stdout, readers.stdout), eachChunk(process.stderr, readers.stderr)];
    const exit = await endOf(process, Promise.all(reading));
    signal?.throwIfAborted();
    return exit;
  } catch (error) {
    signal?.throwIfAborted();
    return refusedStart(error);
  }
}

export async function eachChunk(stream: Readable | null, onChunk: OnChunk): Promise<void> {
  if (stream === null) return;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) onChunk(chunk);
}

/**
 * Resolves when a process has ended and all of its output has been read. If the sandbox refuses the request,
 * e.g. because the working directory does not exist, that counts as a failed start.
 */
export async function endOf(process: ToolProcess, reading: Promise<unknown>): Promise<CommandEnd> {
  const [exit, read] = await Promise.allSettled([process.exit, reading]);
  if (exit.status === "rejected") return refusedStart(exit.reason);
  if (read.status === "rejected") throw read.reason;
  return exit.value;
}

/** Converts a refused request into the end of a process that failed to start. Throws any other error. */
export function refusedStart(error: unknown): CommandEnd {
  if (!isBrigError(error, "exec.bad-cwd") && !isBrigError(error, "exec.invalid")) throw error;
  const { code, errno, message } = error;
  const isForCwd = code === "exec.bad-cwd";
  return {
    exitCode: isForCwd ? NOT_FOUND : NOT_EXECUTABLE,
    signal: null,
    timedOut: false,
    outOfMemory: false,
    treeEnded: false,
    causes: [],
    durationMs: 0,
    usage: { userMs: 0, systemMs: 0, maxRssBytes: 0 },
    startFailure: { stage: isForCwd ? "cwd" : "request", errno, message },
  };
}
