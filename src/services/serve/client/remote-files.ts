import { BrigError, type ErrorCode } from "../../../errors.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { LineReader } from "../../../lib/line-reader.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import type { FileWatch, WatchedChange } from "../../../sandbox/index.js";
import { openWatch } from "../../../sandbox/index.js";
import { fileChangeLineSchema, fileStatSchema } from "../wire/file-schemas.js";
import { entryListSchema, MAX_FILE_BYTES } from "../wire/schemas.js";
import type { RemoteFiles } from "./client-types.js";
import { type HttpCalls, notUnderstood } from "./http-calls.js";

/** The files of a sandbox of the service that these calls go to. */
export function remoteFiles(calls: HttpCalls, id: string): RemoteFiles {
  return {
    read: async (path, { offsetBytes, lengthBytes, signal } = {}) =>
      await calls.bytes("readFile", {
        id,
        query: { path, offset: offsetBytes, length: lengthBytes },
        signal,
        maxBytes: MAX_FILE_BYTES,
      }),
    readStream: (path, { offsetBytes, lengthBytes, signal } = {}) =>
      readPieces(calls, { id, path, offsetBytes, lengthBytes, signal }),
    write: async (path, data, { mode, parents, signal } = {}) => {
      const query = { path, mode: mode?.toString(8), parents };
      await calls.bytes("writeFile", { id, query, body: Buffer.from(data), signal });
    },
    writeStream: async (path, content, { mode, parents, signal } = {}) => {
      const query = { path, mode: mode?.toString(8), parents };
      await calls.bytes("writeFile", { id, query, body: content, signal });
    },
    stat: async (path, { followSymlinks, signal } = {}) =>
      await calls.json("statFile", fileStatSchema, { id, query: { path, followSymlinks }, signal }),
    mkdir: async (path, { recursive, mode, signal } = {}) => {
      const body = { path, recursive, mode: mode?.toString(8).padStart(3, "0") };
      await calls.bytes("makeDirectory", { id, body, signal });
    },
    rename: async (from, to, { signal } = {}) =>
      void (await calls.bytes("moveFile", { id, body: { from, to }, signal })),
    list: async (path, { signal } = {}) => {
      const query = { path };
      const { entries, truncated } = await calls.json("listEntries", entryListSchema, { id, query, signal });
      const withBytes = entries.map(({ name, nameBase64, type }) => ({
        name,
        nameBytes: Buffer.from(nameBase64, "base64"),
        type,
      }));
      return { entries: withBytes, truncated };
    },
    remove: async (path, { recursive, force, signal } = {}) =>
      void (await calls.bytes("removeFile", { id, query: { path, recursive, force }, signal })),
    watch: async (path, { recursive, signal } = {}) =>
      await watchRemotely(calls, { id, path, recursive, signal }),
    readArchive: (path, { signal } = {}) => calls.stream("readArchive", { id, query: { path }, signal }),
    writeArchive: async (path, archive, { signal } = {}) =>
      void (await calls.bytes("writeArchive", { id, query: { path }, body: archive, signal })),
  };
}

interface FilePart {
  id: string;
  path: string;
  offsetBytes: number | undefined;
  lengthBytes: number | undefined;
  signal: AbortSignal | undefined;
}

/** A part may be longer than one that is asked for by its length, and is then a range. */
function readPieces(
  calls: HttpCalls,
  { id, path, offsetBytes = 0, lengthBytes, signal }: FilePart,
): AsyncIterable<Buffer> {
  if (lengthBytes === undefined || lengthBytes <= MAX_FILE_BYTES) {
    const query = { path, offset: offsetBytes, length: lengthBytes };
    return calls.stream("readFile", { id, query, signal });
  }
  const range = `bytes=${offsetBytes}-${offsetBytes + lengthBytes - 1}`;
  return calls.stream("readFile", { id, query: { path }, headers: { range }, signal });
}

const MAX_LINE_BYTES = 64 * 1024;

async function watchRemotely(
  calls: HttpCalls,
  {
    id,
    path,
    recursive,
    signal,
  }: { id: string; path: string; recursive: boolean | undefined; signal: AbortSignal | undefined },
): Promise<FileWatch> {
  const left = new AbortController();
  const either = new AnySignal([signal, left.signal]);
  const request = { id, query: { path, recursive }, signal: either.signal };
  const changes = changesIn(calls.stream("watchFiles", request));
  return await openWatch(changes, {
    async end() {
      left.abort(new DOMException("the watch was closed", "AbortError"));
      either[Symbol.dispose]();
      await changes.return(undefined).catch(() => undefined);
    },
    notBegun: () => notUnderstood("a watch begins with another line"),
  });
}

/** Null says that the watch has begun. */
async function* changesIn(
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<WatchedChange | null, undefined, undefined> {
  const reader = new LineReader(MAX_LINE_BYTES);
  for await (const piece of pieces)
    for (const line of reader.push(piece)) {
      const parsed = fileChangeLineSchema.safeParse(line.kind === "line" ? parseJson(line.text) : undefined);
      if (!parsed.success) throw notUnderstood("a line of it is no change");
      const { data } = parsed;
      if (data.type === "error") {
        const { code, message, hint, errno, reason, disk } = data;
        throw new BrigError(message, { code: code as ErrorCode, hint, errno, reason, disk });
      }
      if (data.type === "start") yield null;
      else yield { type: data.type, path: data.path, pathBytes: Buffer.from(data.pathBase64, "base64") };
    }
  return undefined;
}
