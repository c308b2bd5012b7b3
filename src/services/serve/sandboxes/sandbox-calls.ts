import type { z } from "zod";
import type { ExecOptions, ExecResult } from "../../../sandbox/index.js";
import { INITIAL_CREDIT } from "../../../sandbox/index.js";
import type { MemoryShare } from "../http/memory-budget.js";
import { type Answer, errorLine } from "../http/response.js";
import type { ExecLine, execSchema, execStreamSchema, RemoteExecRecord } from "../wire/schemas.js";
import type { InUse } from "./served-sandbox.js";

type Command = z.output<typeof execStreamSchema>;

/** Its outputs, and both in order of arrival. */
const KEPT_OUTPUTS = 3;
/** What a command sends before it waits, as it comes and as base64 in a line, twice over while that is written. */
const STREAM_BYTES = 4 * INITIAL_CREDIT;

/**
 * Runs a command to its end. Errors: those of `sandbox.exec`; a refusal with 429, before the command begins, if there
 * is no memory for as much output as is to be kept.
 */
export async function execBuffered(
  request: z.output<typeof execSchema>,
  inUse: InUse,
  memory: MemoryShare,
): Promise<RemoteExecRecord> {
  const { argv, encoding = "utf8", maxOutputBytes } = request;
  const before = memory.takenBytes;
  const textLength = encoding === "utf8" ? 1 : 4 / 3;
  memory.take(Math.ceil(KEPT_OUTPUTS * maxOutputBytes * textLength));
  const options = { ...execOptions(request, inUse), maxOutputBytes };
  const ended =
    encoding === "utf8"
      ? await inUse.sandbox.exec(argv, options)
      : textOutputs(await inUse.sandbox.exec(argv, { ...options, encoding: "buffer" }));
  const { usage: _usage, causes, ...answer } = ended;
  memory.giveBackTo(before + answer.stdout.length + answer.stderr.length + answer.output.length);
  return { ...answer, causes: [...causes] };
}

/**
 * Runs a command whose output is sent as it comes. It waits while the client does not read, and is ended when the
 * client goes. Error: a refusal with 429 if there is no memory for what is on the way.
 */
export function execStreamed(
  request: Command,
  use: (run: (inUse: InUse) => Promise<ExecResult>) => Promise<unknown>,
  memory: MemoryShare,
): Answer {
  memory.take(STREAM_BYTES);
  return {
    kind: "lines",
    async run(send) {
      const passed =
        (type: "stdout" | "stderr", { onOutput }: InUse) =>
        async (chunk: Uint8Array) => {
          onOutput?.(type, chunk);
          await send({ type, data: Buffer.from(chunk).toString("base64") } satisfies ExecLine);
        };
      try {
        await use(async (inUse) => {
          const ended = await inUse.sandbox.exec(request.argv, {
            ...execOptions(request, inUse),
            maxOutputBytes: 0,
            onStdout: passed("stdout", inUse),
            onStderr: passed("stderr", inUse),
          });
          await send(exitLine(ended));
          return ended;
        });
      } catch (error) {
        await send(errorLine(error));
      }
    },
  };
}

function exitLine(ended: ExecResult): ExecLine {
  const { exitCode, signal, durationMs, timedOut, outOfMemory, treeEnded, causes } = ended;
  return {
    type: "exit",
    exitCode,
    signal,
    durationMs,
    timedOut,
    outOfMemory,
    treeEnded,
    causes: [...causes],
  };
}

function execOptions(request: Command, { cwd, env, signal, onOutput }: InUse): ExecOptions {
  const { timeoutMs, stdin, stdinEncoding, endsTree } = request;
  const own = Object.entries(request.env ?? {}).map(([name, value]) => [name, value ?? undefined]);
  return {
    cwd: request.cwd ?? cwd,
    env: { ...env, ...Object.fromEntries(own) },
    timeoutMs,
    stdin: stdin === undefined ? undefined : Buffer.from(stdin, stdinEncoding ?? "utf8"),
    endsTree,
    signal,
    onStdout: (chunk) => onOutput?.("stdout", chunk),
    onStderr: (chunk) => onOutput?.("stderr", chunk),
  };
}

function textOutputs<Result extends { stdout: Buffer; stderr: Buffer; output: Buffer }>(result: Result) {
  const text = (bytes: Buffer) => bytes.toString("base64");
  return { ...result, stdout: text(result.stdout), stderr: text(result.stderr), output: text(result.output) };
}
