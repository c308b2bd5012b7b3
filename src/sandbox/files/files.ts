import { refuseUnknownOptions } from "../../known-options.js";
import { protocolError } from "../channel/frames.js";
import {
  INLINE_BYTES,
  LIST_ENTRY_HEAD_BYTES,
  ListFlag,
  MkdirFlag,
  REPORT_SECTION_HEAD_BYTES,
  RemoveFlag,
  SEQUENCE_RESULT_BYTES,
  STAT_RECORD_BYTES,
  StatFlag,
  WriteFlag,
} from "../channel/protocol.js";
import type { CommandContext } from "../process/command.js";
import { lengthPrefixed } from "../process/spawn-request.js";
import { fileOptionNames } from "../sandbox-option-names.js";
import type {
  DirectoryEntry,
  FileStat,
  FileWrite,
  ListOptions,
  PathOptions,
  SandboxFiles,
  WritesDone,
} from "../sandbox-types.js";
import { readFile, readPastHole } from "./file-reads.js";
import {
  type ContentPiece,
  checkedPath,
  encodeExtents,
  encodeFileRequest,
  type FileRequest,
  fileError,
  fileTypeOf,
  perform,
  run,
  runUnless,
} from "./file-request.js";
import { readPieces, writePieces } from "./file-streams.js";
import { watchFiles } from "./watch-files.js";

/** Makes `sandbox.files`, in which every operation is a request to the runner. */
export function sandboxFiles(context: CommandContext): SandboxFiles {
  return {
    read: async (path, options = {}) => await readFile(context, path, checked("read", options)),
    readStream: (path, options = {}) => readPieces(context, path, checked("readStream", options)),
    readPastHole: async (path, options) =>
      await readPastHole(context, path, checked("readPastHole", options)),
    write: async (path, data, options = {}) =>
      await writeFile(context, { ...checked("write", options), path, data }),
    writeStream: async (path, content, options = {}) =>
      await writePieces(context, path, { ...checked("writeStream", options), content }),
    writeEach: async (files, options = {}) => await writeEach(context, files, checked("writeEach", options)),
    stat: async (path, options = {}) => {
      return await statFile(context, path, checked("stat", options));
    },
    list: async (path, options = {}) => await listDirectory(context, path, checked("list", options)),
    mkdir: async (path, options = {}) => {
      const { recursive, mode = 0o777, refuseSymlinks, signal } = checked("mkdir", options);
      const flags = recursive ? MkdirFlag.parents : 0;
      await run(context, { operation: "mkdir", path, flags, mode, refuseSymlinks, signal });
    },
    rename: async (from, to, options = {}) => {
      const { refuseSymlinks, signal } = checked("rename", options);
      const second = checkedPath(to);
      await run(context, { operation: "rename", path: from, second, refuseSymlinks, signal });
    },
    remove: async (path, options = {}) => {
      const { recursive, force, refuseSymlinks, signal } = checked("remove", options);
      const flags = (recursive ? RemoveFlag.recursive : 0) | (force ? RemoveFlag.missingIsFine : 0);
      await run(context, { operation: "remove", path, flags, refuseSymlinks, signal });
    },
    watch: async (path, options = {}) => await watchFiles(context, path, checked("watch", options)),
  };
}

function checked<Options extends object>(operation: keyof typeof fileOptionNames, options: Options): Options {
  refuseUnknownOptions(options, fileOptionNames[operation], { of: `files.${operation}` });
  return options;
}

/** The path may have any bytes. */
export async function statFile(
  context: CommandContext,
  path: string | Uint8Array,
  { followSymlinks, refuseSymlinks, signal }: PathOptions & { followSymlinks?: boolean | undefined },
): Promise<FileStat> {
  const flags = followSymlinks === false ? StatFlag.linkItself : 0;
  return parseStat((await run(context, { operation: "stat", path, flags, refuseSymlinks, signal })).result);
}

/** The path may have any bytes. */
export async function listDirectory(
  context: CommandContext,
  path: string | Uint8Array,
  { onEntries, signal }: ListOptions,
): Promise<DirectoryEntry[]> {
  const kept: DirectoryEntry[] = [];
  const take: (entries: DirectoryEntry[]) => unknown = onEntries ?? ((entries) => void kept.push(...entries));
  const short = await listShort(context, path, signal);
  if (short !== null) {
    await take(short);
    return kept;
  }
  let rest: Buffer = Buffer.alloc(0);
  await run(context, {
    operation: "list",
    path,
    signal,
    onOutput(data) {
      const parsed = parseEntries(Buffer.concat([rest, data]));
      rest = parsed.rest;
      return take(parsed.entries);
    },
  });
  if (rest.length > 0) throw protocolError("a directory entry that is cut off");
  return kept;
}

async function listShort(
  context: CommandContext,
  path: string | Uint8Array,
  signal: AbortSignal | undefined,
): Promise<DirectoryEntry[] | null> {
  const request = { operation: "list", path, flags: ListFlag.inline, signal } as const;
  const record = await runUnless(context, request, "EOVERFLOW");
  if (record === null) return null;
  const { entries, rest } = parseEntries(record.result);
  if (rest.length > 0) throw protocolError("a directory entry that is cut off");
  return entries;
}

/** Has the runner read back what the kernel enforces. Returns sections by name, see PROTOCOL.md. */
export async function readReport(
  context: CommandContext,
  paths: readonly string[],
): Promise<Map<string, Buffer>> {
  const pieces: Buffer[] = [];
  await run(context, {
    operation: "report",
    path: paths.join("\n"),
    onOutput: (data) => void pieces.push(Buffer.from(data)),
  });
  return parseSections(Buffer.concat(pieces));
}

/** Reads the target of a symbolic link, as bytes because it need not be UTF-8. Does not follow the link. */
export async function readLink(
  context: CommandContext,
  path: string | Uint8Array,
  { signal }: { signal?: AbortSignal | undefined },
): Promise<Buffer> {
  const request = {
    operation: "stat",
    path,
    flags: StatFlag.linkItself,
    refuseSymlinks: true,
    signal,
  } as const;
  const { result } = await run(context, request);
  const { type } = parseStat(result);
  return type === "symlink" ? result.subarray(STAT_RECORD_BYTES) : Buffer.alloc(0);
}

function parseStat(record: Buffer): FileStat {
  if (record.length < STAT_RECORD_BYTES || record.length !== STAT_RECORD_BYTES + record.readUInt32LE(48))
    throw protocolError("a stat record of the wrong size");
  const type = fileTypeOf(record.readUInt8(0));
  return {
    type,
    mode: record.readUInt32LE(4),
    uid: record.readUInt32LE(8),
    gid: record.readUInt32LE(12),
    sizeBytes: Number(record.readBigUInt64LE(16)),
    modifiedMs: Number(record.readBigInt64LE(24)) / 1e6,
    dev: record.readBigUInt64LE(32),
    ino: record.readBigUInt64LE(40),
    linkTarget: type === "symlink" ? record.toString("utf8", STAT_RECORD_BYTES) : null,
  };
}

/** Returns the complete entries and the remaining bytes. The entries share memory with `bytes`. */
function parseEntries(bytes: Buffer): { entries: DirectoryEntry[]; rest: Buffer } {
  const entries: DirectoryEntry[] = [];
  let at = 0;
  while (at + LIST_ENTRY_HEAD_BYTES <= bytes.length) {
    const end = at + LIST_ENTRY_HEAD_BYTES + bytes.readUInt16LE(at + 2);
    if (end > bytes.length) break;
    const nameBytes = bytes.subarray(at + LIST_ENTRY_HEAD_BYTES, end);
    entries.push({
      nameBytes,
      name: nameBytes.toString("utf8"),
      type: fileTypeOf(bytes.readUInt8(at)),
    });
    at = end;
  }
  return { entries, rest: bytes.subarray(at) };
}

function parseSections(bytes: Buffer): Map<string, Buffer> {
  const sections = new Map<string, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const nameAt = at + REPORT_SECTION_HEAD_BYTES;
    const nameEnd = nameAt + (nameAt <= bytes.length ? bytes.readUInt16LE(at) : bytes.length);
    const end = nameEnd <= bytes.length ? nameEnd + bytes.readUInt32LE(at + 2) : Number.POSITIVE_INFINITY;
    if (end > bytes.length) throw protocolError("a report section that is cut off");
    sections.set(bytes.toString("utf8", nameAt, nameEnd), bytes.subarray(nameEnd, end));
    at = end;
  }
  return sections;
}

const MAX_SEQUENCE_BYTES = 1024 * 1024;
const MAX_CHARACTER_BYTES = 4;

export async function writeFile(context: CommandContext, file: FileWrite & PathOptions): Promise<void> {
  await run(context, { ...writeRequest(file, file), signal: file.signal });
}

/** Works like `writeFile`, for a content of any size that comes in pieces. Its holes stay holes. */
export async function writeContent(
  context: CommandContext,
  {
    path,
    content,
    mode,
    signal,
  }: { path: string; content: AsyncIterable<ContentPiece>; mode: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const input = encodeExtents(content);
  const flags = WriteFlag.extents;
  await run(context, { operation: "write", path, flags, mode, refuseSymlinks: true, input, signal });
}

function writeRequest({ path, data, mode = 0o644 }: FileWrite, { refuseSymlinks }: PathOptions): FileRequest {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  const content = bytes.length > INLINE_BYTES ? { input: bytes } : { second: bytes, flags: WriteFlag.inline };
  return { operation: "write", path, mode, refuseSymlinks, ...content };
}

export async function writeEach(
  context: CommandContext,
  files: readonly FileWrite[],
  options: PathOptions,
): Promise<WritesDone> {
  for (const { path } of files) checkedPath(path);
  let written = 0;
  for (const requests of groupShortWrites(files.map((file) => writeRequest(file, options)))) {
    const done = await writeInOrder(context, requests, options.signal);
    written += done.written;
    if (done.failure !== null) return { written, failure: done.failure };
  }
  return { written, failure: null };
}

function* groupShortWrites(requests: readonly FileRequest[]): Generator<FileRequest[]> {
  let sequence: FileRequest[] = [];
  let bytes = 0;
  for (const request of requests) {
    const length = (request.second?.length ?? MAX_SEQUENCE_BYTES) + request.path.length * MAX_CHARACTER_BYTES;
    if (sequence.length > 0 && bytes + length > MAX_SEQUENCE_BYTES) {
      yield sequence;
      sequence = [];
      bytes = 0;
    }
    sequence.push(request);
    bytes += length;
  }
  if (sequence.length > 0) yield sequence;
}

async function writeInOrder(
  context: CommandContext,
  requests: readonly FileRequest[],
  signal: AbortSignal | undefined,
): Promise<WritesDone> {
  const [only] = requests;
  if (only && requests.length === 1)
    return await run(context, { ...only, signal }).then(
      () => ({ written: 1, failure: null }),
      (failure: unknown) => ({ written: 0, failure }),
    );
  if (signal?.aborted) return { written: 0, failure: signal.reason };
  const second = Buffer.concat(requests.map((request) => lengthPrefixed(encodeFileRequest(request))));
  const record = await perform(context, { operation: "sequence", path: "/", second, signal });
  const written = record.result.length === SEQUENCE_RESULT_BYTES ? record.result.readUInt32LE(0) : 0;
  const failed = requests[written];
  const isDone = record.kind === "file" && record.errno === 0;
  if (isDone !== (written === requests.length))
    throw protocolError(`${written} of ${requests.length} writes`);
  if (failed === undefined) return { written, failure: null };
  return { written, failure: signal?.aborted ? signal.reason : fileError(failed, record) };
}
