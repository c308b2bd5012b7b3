import { posix } from "node:path";
import { Readable } from "node:stream";
import type { z } from "zod";
import { AnySignal } from "../../../lib/time/any-signal.js";
import type { FileWatch } from "../../../sandbox/index.js";
import type { MemoryShare } from "../http/memory-budget.js";
import { Refusal } from "../http/refusal.js";
import { type Answer, type Call, type Calls, errorLine } from "../http/response.js";
import type { UploadedBody } from "../http/uploaded-body.js";
import type { InUse, ServedSandbox } from "../sandboxes/served-sandbox.js";
import type { FileChangeLine } from "../wire/file-schemas.js";
import { ARCHIVE_TYPE, type RouteName } from "../wire/routes.js";
import { type EntryList, MAX_ENTRIES, MAX_FILE_BYTES, type writeFileSchema } from "../wire/schemas.js";
import { readArchive, writeArchive } from "./sandbox-archive.js";

type FileCalls = Pick<
  Calls,
  | "readFile"
  | "writeFile"
  | "removeFile"
  | "listEntries"
  | "statFile"
  | "makeDirectory"
  | "moveFile"
  | "watchFiles"
  | "readArchive"
  | "writeArchive"
>;

const nothing: Answer = { kind: "nothing" };
const json = (value: unknown): Answer => ({ kind: "json", value });

/** Up to this size a file is in memory as a whole, which takes fewer requests to the sandbox. */
const SHORT_BYTES = 1024 * 1024;
/** What is on the way between the client and the sandbox, on each side. */
const TRANSFER_BYTES = 1024 * 1024;

/** How requests about files are answered. `find` gives a client's sandbox. Errors of all: `serve.unknown`, `file.*`. */
export function fileCalls(find: (client: string, id: string) => ServedSandbox): FileCalls {
  const use = async <T>({ client, id, signal }: Call<RouteName>, run: (inUse: InUse) => Promise<T>) =>
    await find(client, id).use(signal, run);
  return {
    readFile: async (call) => await sendFile(call, find(call.client, call.id)),
    async writeFile(call) {
      await use(call, async (inUse) => await writeFile(call, inUse));
      return nothing;
    },
    async removeFile(call) {
      const { path, recursive, force } = call.query;
      await use(call, async ({ sandbox, signal }) => {
        await sandbox.files.remove(path, {
          recursive: recursive === "true",
          force: force === "true",
          signal,
        });
      });
      return nothing;
    },
    listEntries: async (call) =>
      json(await use(call, async (inUse) => await listEntries(call.query.path, inUse, call.memory))),
    statFile: async (call) =>
      await use(call, async ({ sandbox, signal }) => {
        const { path, followSymlinks } = call.query;
        const {
          dev: _dev,
          ino: _ino,
          ...stat
        } = await sandbox.files.stat(path, {
          followSymlinks: followSymlinks !== "false",
          signal,
        });
        return json(stat);
      }),
    async makeDirectory(call) {
      const { path, recursive, mode } = call.body;
      await use(call, async ({ sandbox, signal }) => {
        await sandbox.files.mkdir(path, { recursive, mode: modeOf(mode), signal });
      });
      return nothing;
    },
    async moveFile(call) {
      const { from, to } = call.body;
      await use(call, async ({ sandbox, signal }) => await sandbox.files.rename(from, to, { signal }));
      return nothing;
    },
    watchFiles: async (call) => await sendChanges(call, find(call.client, call.id)),
    async readArchive(call) {
      call.memory.take(TRANSFER_BYTES);
      const { path } = call.query;
      const pieces = find(call.client, call.id).pieces(call.signal, ({ sandbox, signal }) =>
        readArchive(sandbox.files, { path, top: posix.basename(path) || ".", signal }),
      );
      return { kind: "stream", type: ARCHIVE_TYPE, pieces: await begun(pieces) };
    },
    async writeArchive(call) {
      call.memory.take(TRANSFER_BYTES);
      await use(call, async ({ sandbox, signal }) => {
        const archive = Readable.from(call.body, { objectMode: false });
        await writeArchive(sandbox, archive, { path: call.query.path, hasTop: false, signal });
      });
      return nothing;
    },
  };
}

function modeOf(octal: string | undefined): number | undefined {
  return octal === undefined ? undefined : Number.parseInt(octal, 8);
}

interface Part {
  offset: number;
  /** Null for a file of the kernel's, which has any size and says 0. */
  length: number | null;
  /** With the status 206. */
  range?: string;
}

async function sendFile(call: Call<"readFile">, served: ServedSandbox): Promise<Answer> {
  const { query, headers, signal, memory } = call;
  const { path } = query;
  const { sizeBytes } = await served.use(
    signal,
    async ({ sandbox, signal }) => await sandbox.files.stat(path, { signal }),
  );
  const { offset, length, range } = partOf(query, headers.range, sizeBytes);
  const about = range === undefined ? {} : { status: 206, headers: { "content-range": range } };
  if (length === null || length <= SHORT_BYTES) {
    const wanted = { path, offset, length: length ?? query.length };
    const bytes = await served.use(signal, async (inUse) => await readShort(wanted, inUse, memory));
    return { kind: "bytes", bytes, ...about };
  }
  memory.take(TRANSFER_BYTES);
  const pieces = served.pieces(signal, ({ sandbox, signal }) =>
    exactly(length, sandbox.files.readStream(path, { offsetBytes: offset, lengthBytes: length, signal })),
  );
  return { kind: "stream", type: BYTES_TYPE, lengthBytes: length, pieces: await begun(pieces), ...about };
}

/** A file that was read is in memory twice for a moment: in pieces, and joined. */
const READ_COPIES = 2;

/**
 * Reads a file, or a part of it, as a whole. Errors: `file.*`; `file.too-large` for more than may be in memory at once; a refusal with 429 if there is
 * no memory for what would be read.
 */
export async function readShort(
  { path, offset, length }: { path: string; offset: number; length: number | undefined },
  { sandbox, signal }: InUse,
  memory: MemoryShare,
): Promise<Buffer> {
  memory.take(READ_COPIES * (length ?? MAX_FILE_BYTES));
  const bytes =
    length === undefined
      ? await sandbox.files.read(path, { offsetBytes: offset, maxBytes: MAX_FILE_BYTES, signal })
      : await sandbox.files.read(path, { offsetBytes: offset, lengthBytes: length, signal });
  memory.giveBackTo(bytes.length);
  return bytes;
}

const BYTES_TYPE = "application/octet-stream";

/** Error: a refusal with 416 for a range that the file does not have. */
function partOf(
  { offset, length }: { offset?: number | undefined; length?: number | undefined },
  range: string | undefined,
  sizeBytes: number,
): Part {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  const isRange = offset === undefined && length === undefined && `${first}${last}` !== "";
  if (!isRange) {
    const from = offset ?? 0;
    if (sizeBytes === 0) return { offset: from, length: null };
    return { offset: from, length: Math.min(length ?? sizeBytes, Math.max(0, sizeBytes - from)) };
  }
  const from = first === "" ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const to = first === "" || last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  if (from <= to) return { offset: from, length: to - from + 1, range: `bytes ${from}-${to}/${sizeBytes}` };
  throw new Refusal(`the file has ${sizeBytes} bytes, and not the range that was asked for`, {
    status: 416,
    code: "usage.invalid",
    headers: { "content-range": `bytes */${sizeBytes}` },
  });
}

/** Error: one that cuts the answer, since its client would wait for what does not come. */
async function* exactly(lengthBytes: number, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = lengthBytes;
  for await (const piece of pieces) {
    left -= piece.length;
    yield piece;
  }
  if (left > 0) throw new Error("the file became shorter while it was read");
}

/** Waits for the first piece, so that a failure before it is an answer of its own. */
async function begun<T>(pieces: AsyncGenerator<T>): Promise<AsyncGenerator<T>> {
  const first = await pieces.next();
  const all = async function* () {
    try {
      if (first.done !== true) yield first.value;
      yield* pieces;
    } finally {
      await pieces.return(undefined);
    }
  };
  return all();
}

async function writeFile(
  {
    query,
    body,
    memory,
  }: { query: z.output<typeof writeFileSchema>; body: UploadedBody; memory: MemoryShare },
  { sandbox, signal }: InUse,
): Promise<void> {
  const { path, mode, parents } = query;
  if (parents === "true") await sandbox.files.mkdir(posix.dirname(path), { recursive: true, signal });
  const options = { mode: modeOf(mode), signal };
  if (body.lengthBytes === null || body.lengthBytes > SHORT_BYTES) {
    memory.take(TRANSFER_BYTES);
    return await sandbox.files.writeStream(path, body, options);
  }
  memory.take(2 * body.lengthBytes);
  const pieces: Buffer[] = [];
  for await (const piece of body) pieces.push(piece);
  await sandbox.files.write(path, Buffer.concat(pieces), options);
}

/** The most that one entry of a directory takes in the answer: its name, also in base64, and the JSON around it. */
const ENTRY_BYTES = 1024;

/** A directory may have any number of entries, so only so many are listed. Errors: `file.*`; a refusal with 429. */
export async function listEntries(
  path: string,
  { sandbox, signal }: InUse,
  memory: MemoryShare,
): Promise<EntryList> {
  const entries: EntryList["entries"] = [];
  let truncated = false;
  const enough = new AbortController();
  using either = new AnySignal([signal, enough.signal]);
  try {
    await sandbox.files.list(path, {
      signal: either.signal,
      onEntries(more) {
        const room = MAX_ENTRIES - entries.length;
        memory.take(Math.min(room, more.length) * ENTRY_BYTES);
        for (const { name, nameBytes, type } of more.slice(0, room))
          entries.push({ name, nameBase64: Buffer.from(nameBytes).toString("base64"), type });
        if (more.length <= room) return;
        truncated = true;
        enough.abort();
      },
    });
  } catch (error) {
    if (!truncated || signal.aborted) throw error;
  }
  return { entries, truncated };
}

/** The watch has begun when the answer begins. */
async function sendChanges(call: Call<"watchFiles">, served: ServedSandbox): Promise<Answer> {
  call.memory.take(TRANSFER_BYTES);
  const { path, recursive } = call.query;
  const lines = served.pieces(call.signal, async function* ({ sandbox, signal }) {
    await using watch = await served.watches.open(sandbox, path, {
      recursive: recursive === "true",
      signal,
    });
    yield* linesOf(watch);
  });
  const all = await begun(lines);
  return {
    kind: "lines",
    async run(send) {
      try {
        for await (const line of all) await send(line);
      } catch (error) {
        await send(errorLine(error));
      }
    },
  };
}

async function* linesOf(watch: FileWatch): AsyncGenerator<FileChangeLine> {
  yield { type: "start" };
  for await (const { type, path, pathBytes } of watch)
    yield { type, path, pathBase64: Buffer.from(pathBytes).toString("base64") };
}
