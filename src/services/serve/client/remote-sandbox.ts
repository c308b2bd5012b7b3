import { attemptResultSchema } from "../../../batch/index.js";
import { BrigError, type ErrorCode, isBrigError } from "../../../errors.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import type { CommandOptions } from "../../../sandbox/index.js";
import { egressSchema, proofSchema, receiptSchema } from "../wire/account-schemas.js";
import { processListSchema } from "../wire/process-schemas.js";
import {
  type ExecLine,
  execLineSchema,
  execResultSchema,
  type RemoteExit,
  type RemoteSandboxRecord,
  sandboxSchema,
} from "../wire/schemas.js";
import type { RemoteCallOptions, RemoteSandbox, RemoteStreamOptions } from "./client-types.js";
import { type ClientRequest, type HttpCalls, notUnderstood } from "./http-calls.js";
import { remoteFiles } from "./remote-files.js";
import { attachedProcess, spawnedProcess } from "./remote-process.js";
import { remoteWorkspace } from "./remote-workspace.js";
import { sentVariables } from "./sent-variables.js";

/** A sandbox of the service that these calls go to. */
export function remoteSandbox(calls: HttpCalls, record: RemoteSandboxRecord): RemoteSandbox {
  const { id, image, workingDirectory } = record;
  const remove = async ({ signal }: RemoteCallOptions = {}) =>
    void (await calls.bytes("deleteSandbox", { id, signal }));
  const close = async () => {
    await remove().catch((error: unknown) => {
      // The service may have removed it already.
      if (!isBrigError(error, "serve.unknown")) throw error;
    });
  };
  return {
    ...{ id, image, workingDirectory, record },
    files: remoteFiles(calls, id),
    exec: execIn(calls, id),
    async stream(argv, options = {}) {
      const request = { id, body: commandBody(argv, options), signal: options.signal };
      return await streamCommand(calls, request, options);
    },
    spawn: async (argv, options = {}) => await spawnedProcess({ calls, sandbox: id }, argv, options),
    processes: async ({ signal } = {}) =>
      (await calls.json("listProcesses", processListSchema, { id, signal })).processes,
    process: async (name, options = {}) => await attachedProcess({ calls, sandbox: id }, name, options),
    extend: async (lifeMs, { signal } = {}) =>
      await calls.json("extendSandbox", sandboxSchema, { id, body: { lifeMs }, signal }),
    setNetwork: async (network, { signal } = {}) =>
      await calls.json("setNetwork", sandboxSchema, { id, body: { network }, signal }),
    ...remoteWorkspace(calls, id, (fork) => remoteSandbox(calls, fork)),
    proof: async ({ signal } = {}) => await calls.json("getProof", proofSchema, { id, signal }),
    egress: async ({ signal } = {}) => await calls.json("getEgress", egressSchema, { id, signal }),
    receipt: async ({ signal } = {}) => await calls.json("getReceipt", receiptSchema, { id, signal }),
    grade: async ({ signal } = {}) => await calls.json("gradeSandbox", attemptResultSchema, { id, signal }),
    delete: remove,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function execIn(calls: HttpCalls, id: string): RemoteSandbox["exec"] {
  const exec = async (argv: readonly string[], options: CommandOptions = {}) => {
    const { maxOutputBytes, encoding, signal } = options;
    const body = {
      ...commandBody(argv, options),
      maxOutputBytes,
      encoding: encoding === "buffer" ? "base64" : undefined,
    };
    const answer = await calls.json("exec", execResultSchema, { id, body, signal });
    if (encoding !== "buffer") return answer;
    const bytes = (text: string) => Buffer.from(text, "base64");
    const { stdout, stderr, output } = answer;
    return { ...answer, stdout: bytes(stdout), stderr: bytes(stderr), output: bytes(output) };
  };
  // The encoding decides which of the two it is.
  return exec as RemoteSandbox["exec"];
}

function commandBody(argv: readonly string[], options: CommandOptions): object {
  const { cwd, timeoutMs, stdin, endsTree } = options;
  const isText = stdin === undefined || typeof stdin === "string";
  return {
    argv,
    cwd,
    env: sentVariables(options.env),
    timeoutMs,
    endsTree,
    stdin: isText ? stdin : Buffer.from(stdin).toString("base64"),
    stdinEncoding: isText ? undefined : "base64",
  };
}

const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** Errors: those of the command's call; `serve.unreachable` if the answer ends too early. */
async function streamCommand(
  calls: HttpCalls,
  request: ClientRequest,
  { onStdout, onStderr }: RemoteStreamOptions,
): Promise<RemoteExit> {
  let exit: RemoteExit | undefined;
  let rest: Buffer[] = [];
  let restBytes = 0;
  const takeLine = async (text: string) => {
    const line = parsedLine(text);
    if (line.type === "exit") {
      const { type: _type, ...how } = line;
      exit = how;
    } else if (line.type === "error") {
      const { code, message, hint, errno, reason, disk } = line;
      throw new BrigError(message, { code: code as ErrorCode, hint, errno, reason, disk });
    } else await (line.type === "stdout" ? onStdout : onStderr)?.(Buffer.from(line.data, "base64"));
  };
  await calls.pieces("execStream", request, async (piece) => {
    let from = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, from)) {
      await takeLine(Buffer.concat([...rest, piece.subarray(from, end)]).toString());
      [rest, restBytes, from] = [[], 0, end + 1];
    }
    restBytes += piece.length - from;
    if (restBytes > MAX_LINE_BYTES) throw notUnderstood("a line of it has no end");
    if (from < piece.length) rest.push(piece.subarray(from));
  });
  if (exit !== undefined) return exit;
  throw new BrigError("the answer ended before the command did", {
    code: "serve.unreachable",
    hint: "the service was ended, or a proxy has cut the connection",
  });
}

function parsedLine(text: string): ExecLine {
  const parsed = execLineSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw notUnderstood("a line of it is no part of a command's output");
}
