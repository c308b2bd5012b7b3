import { attemptResultSchema } from "../../../batch/index.js";
import { isBrigError } from "../../../errors.js";
import type { CommandOptions } from "../../../sandbox/index.js";
import { entryListSchema, execResultSchema, type RemoteSandboxRecord } from "../wire/schemas.js";
import type { RemoteCallOptions, RemoteFiles, RemoteSandbox } from "./client-types.js";
import type { HttpCalls } from "./http-calls.js";
import { streamCommand } from "./stream-command.js";

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
  const { cwd, env, timeoutMs, stdin, endsTree } = options;
  const isText = stdin === undefined || typeof stdin === "string";
  return {
    argv,
    cwd,
    // JSON has no undefined, which removes a variable as null does.
    env: env && Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value ?? null])),
    timeoutMs,
    endsTree,
    stdin: isText ? stdin : Buffer.from(stdin).toString("base64"),
    stdinEncoding: isText ? undefined : "base64",
  };
}

function remoteFiles(calls: HttpCalls, id: string): RemoteFiles {
  return {
    read: async (path, { offsetBytes, lengthBytes, signal } = {}) =>
      await calls.bytes("readFile", {
        id,
        query: { path, offset: offsetBytes, length: lengthBytes },
        signal,
      }),
    write: async (path, data, { mode, parents, signal } = {}) => {
      const query = { path, mode: mode?.toString(8), parents };
      await calls.bytes("writeFile", { id, query, body: Buffer.from(data), signal });
    },
    list: async (path, { signal } = {}) => {
      const { entries, truncated } = await calls.json("listEntries", entryListSchema, {
        id,
        query: { path },
        signal,
      });
      const withBytes = entries.map(({ name, nameBase64, type }) => ({
        name,
        nameBytes: Buffer.from(nameBase64, "base64"),
        type,
      }));
      return { entries: withBytes, truncated };
    },
    remove: async (path, { recursive, force, signal } = {}) =>
      void (await calls.bytes("removeFile", { id, query: { path, recursive, force }, signal })),
  };
}
