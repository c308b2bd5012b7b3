import { BrigError, type ErrorCode } from "../errors.js";
import { FrameType, protocolError } from "./channel/frames.js";
import { Command } from "./command.js";
import { errnoName } from "./errno.js";
import type { CommandSetting } from "./exec.js";
import type { ExitRecord } from "./exit-record.js";
import { lengthPrefixed } from "./spawn-request.js";
import type { DirectoryEntry, FileStat, FileType, ListOptions, ReadOptions, SandboxFiles } from "./types.js";

const DEFAULT_MAX_BYTES = 256 * 1024 * 1024;
const NOT_REGULAR = 4096;
/** Flag of a read: fail with EFBIG if there is more than was asked for. */
const REFUSE_LONGER = 1;

const operations = {
  read: 1,
  write: 2,
  stat: 3,
  list: 4,
  mkdir: 5,
  rename: 6,
  remove: 7,
  report: 8,
} as const;
type Operation = keyof typeof operations;

const fileTypes: readonly FileType[] = [
  "unknown",
  "file",
  "directory",
  "symlink",
  "fifo",
  "socket",
  "char-device",
  "block-device",
];

interface FileRequest {
  operation: Operation;
  path: string | Uint8Array;
  second?: string;
  flags?: number;
  mode?: number;
  offsetBytes?: number;
  lengthBytes?: number;
  input?: Uint8Array;
  signal?: AbortSignal | undefined;
  onOutput?: (data: Buffer) => void;
}

/** `sandbox.files`: every operation is one request to the runner. */
export function sandboxFiles(setting: CommandSetting): SandboxFiles {
  return {
    read: (path, options = {}) => readFile(setting, path, options),
    write: async (path, data, options = {}) => {
      const input = typeof data === "string" ? Buffer.from(data) : data;
      await run(setting, {
        operation: "write",
        path,
        input,
        mode: options.mode ?? 0o644,
        signal: options.signal,
      });
    },
    stat: async (path, options = {}) => {
      const flags = options.followSymlinks === false ? 1 : 0;
      return parseStat(
        (await run(setting, { operation: "stat", path, flags, signal: options.signal })).result,
      );
    },
    list: (path, options = {}) => listDirectory(setting, path, options),
    mkdir: async (path, options = {}) => {
      const { recursive, mode = 0o777, signal } = options;
      await run(setting, { operation: "mkdir", path, flags: recursive ? 1 : 0, mode, signal });
    },
    rename: async (from, to, options = {}) => {
      await run(setting, {
        operation: "rename",
        path: from,
        second: checkedPath(to),
        signal: options.signal,
      });
    },
    remove: async (path, options = {}) => {
      const flags = (options.recursive ? 1 : 0) | (options.force ? 2 : 0);
      await run(setting, { operation: "remove", path, flags, signal: options.signal });
    },
  };
}

async function readFile(setting: CommandSetting, path: string, options: ReadOptions): Promise<Buffer> {
  const { offsetBytes = 0, lengthBytes, signal } = options;
  if (lengthBytes === 0) {
    await sandboxFiles(setting).stat(path, signal ? { signal } : {});
    return Buffer.alloc(0);
  }
  const maxBytes = lengthBytes ?? options.maxBytes ?? DEFAULT_MAX_BYTES;
  const pieces: Buffer[] = [];
  let total = 0;
  await run(setting, {
    operation: "read",
    path,
    offsetBytes,
    // A size the kernel tells is refused by the runner at once. Elsewhere one byte more than allowed shows it.
    flags: lengthBytes === undefined ? REFUSE_LONGER : 0,
    lengthBytes: lengthBytes ?? maxBytes + 1,
    signal,
    onOutput: (data) => {
      total += data.length;
      pieces.push(Buffer.from(data));
    },
  });
  if (total > maxBytes)
    throw new BrigError(`cannot read ${path}: ${codes.EFBIG.text}`, {
      code: codes.EFBIG.code,
      hint: codes.EFBIG.hint,
    });
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
}

async function listDirectory(
  setting: CommandSetting,
  path: string | Uint8Array,
  { onEntries, signal }: ListOptions,
): Promise<DirectoryEntry[]> {
  const kept: DirectoryEntry[] = [];
  const take = onEntries ?? ((entries) => void kept.push(...entries));
  let rest: Buffer = Buffer.alloc(0);
  await run(setting, {
    operation: "list",
    path,
    signal,
    onOutput(data) {
      const parsed = parseEntries(Buffer.concat([rest, data]));
      rest = parsed.rest;
      take(parsed.entries);
    },
  });
  if (rest.length > 0) throw protocolError("a directory entry that is cut off");
  return kept;
}

/** The read-back of the policy: sections by name, see PROTOCOL.md. */
export async function readReport(
  setting: CommandSetting,
  paths: readonly string[],
): Promise<Map<string, Buffer>> {
  const pieces: Buffer[] = [];
  await run(setting, {
    operation: "report",
    path: paths.join("\n"),
    onOutput: (data) => void pieces.push(Buffer.from(data)),
  });
  return parseSections(Buffer.concat(pieces));
}

async function run(setting: CommandSetting, request: FileRequest): Promise<ExitRecord> {
  request.signal?.throwIfAborted();
  const command = new Command(
    setting.link,
    { type: FrameType.file, payload: encodeFileRequest(request) },
    { onOutput: (data) => request.onOutput?.(data), onStuck: setting.onStuck },
  );
  const cancel = () => command.kill();
  request.signal?.addEventListener("abort", cancel, { once: true });
  try {
    const [record] = await Promise.all([command.ended, feed(command, request.input)]);
    request.signal?.throwIfAborted();
    if (record.kind !== "file" || record.errno !== 0) throw fileError(request, record);
    return record;
  } finally {
    request.signal?.removeEventListener("abort", cancel);
  }
}

async function feed(command: Command, input: Uint8Array | undefined): Promise<void> {
  if (!input) return;
  await command.write(Buffer.from(input.buffer, input.byteOffset, input.byteLength));
  command.endInput();
}

function encodeFileRequest(request: FileRequest): Buffer {
  const head = Buffer.alloc(24);
  head[0] = operations[request.operation];
  head[1] = request.flags ?? 0;
  head.writeUInt32LE(request.mode ?? 0, 4);
  head.writeBigUInt64LE(checkedCount(request.offsetBytes, "offsetBytes"), 8);
  head.writeBigUInt64LE(checkedCount(request.lengthBytes, "lengthBytes"), 16);
  const path = request.operation === "report" ? request.path : checkedPath(request.path);
  return Buffer.concat([
    head,
    lengthPrefixed(Buffer.from(path)),
    lengthPrefixed(Buffer.from(request.second ?? "")),
  ]);
}

function checkedCount(value: number | undefined, name: string): bigint {
  if (value === undefined) return 0n;
  if (Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw new BrigError(`${name} must be a whole number of bytes, not ${value}`, { code: "file.failed" });
}

function pathText(path: string | Uint8Array): string {
  return path instanceof Uint8Array ? Buffer.from(path).toString("utf8") : String(path);
}

function checkedPath<Path extends string | Uint8Array>(path: Path): Path {
  const text = pathText(path);
  if (text.startsWith("/") && !text.includes("\0")) return path;
  throw new BrigError(`${JSON.stringify(text)} is not an absolute path`, {
    code: "file.not-found",
    hint: "paths inside a sandbox are absolute; the workspace has the same path as on the host",
  });
}

interface Failure {
  code: ErrorCode;
  text: string;
  hint?: string;
}

const codes = {
  ENOENT: { code: "file.not-found", text: "no such file or directory" },
  EACCES: { code: "file.not-permitted", text: "permission denied" },
  EPERM: { code: "file.not-permitted", text: "operation not permitted" },
  EROFS: {
    code: "file.read-only",
    text: "read-only file system",
    hint: "the sandbox's mode makes this place read-only",
  },
  EISDIR: { code: "file.is-directory", text: "is a directory" },
  ENOTDIR: { code: "file.not-directory", text: "not a directory" },
  EEXIST: { code: "file.exists", text: "file exists" },
  EFBIG: {
    code: "file.too-large",
    text: "the file is too large",
    hint: "read it in ranges with offsetBytes and lengthBytes, or raise maxBytes",
  },
} as const satisfies Record<string, Failure>;

const failureOf: ReadonlyMap<string, Failure> = new Map(Object.entries(codes));

function fileError(request: FileRequest, record: ExitRecord): BrigError {
  const { operation } = request;
  const path = pathText(request.path);
  if (record.errno >= NOT_REGULAR) {
    const type = fileTypes[record.errno - NOT_REGULAR] ?? "unknown";
    return new BrigError(`cannot ${operation} ${path}: it is not a regular file but a ${type}`, {
      code: "file.not-regular",
    });
  }
  const errno = record.kind === "file" ? errnoName(record.errno) : "EIO";
  const known = failureOf.get(errno);
  return new BrigError(`cannot ${operation} ${path}: ${known?.text ?? errno}`, {
    code: known?.code ?? "file.failed",
    hint: known?.hint,
    cause: Object.assign(new Error(errno), { code: errno, errno: -record.errno }),
  });
}

function parseStat(record: Buffer): FileStat {
  if (record.length < 52 || record.length !== 52 + record.readUInt32LE(48))
    throw protocolError("a stat record of the wrong size");
  const type = fileTypes[record.readUInt8(0)] ?? "unknown";
  return {
    type,
    mode: record.readUInt32LE(4),
    uid: record.readUInt32LE(8),
    gid: record.readUInt32LE(12),
    sizeBytes: Number(record.readBigUInt64LE(16)),
    modifiedMs: Number(record.readBigInt64LE(24)) / 1e6,
    dev: record.readBigUInt64LE(32),
    ino: record.readBigUInt64LE(40),
    linkTarget: type === "symlink" ? record.toString("utf8", 52) : null,
  };
}

/** The entries that are complete, and the beginning of one that is not. The bytes are the caller's to give away. */
function parseEntries(bytes: Buffer): { entries: DirectoryEntry[]; rest: Buffer } {
  const entries: DirectoryEntry[] = [];
  let at = 0;
  while (at + 4 <= bytes.length) {
    const end = at + 4 + bytes.readUInt16LE(at + 2);
    if (end > bytes.length) break;
    const nameBytes = bytes.subarray(at + 4, end);
    entries.push({
      nameBytes,
      name: nameBytes.toString("utf8"),
      type: fileTypes[bytes.readUInt8(at)] ?? "unknown",
    });
    at = end;
  }
  return { entries, rest: bytes.subarray(at) };
}

function parseSections(bytes: Buffer): Map<string, Buffer> {
  const sections = new Map<string, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const nameEnd = at + 6 + (at + 6 <= bytes.length ? bytes.readUInt16LE(at) : bytes.length);
    const end = nameEnd <= bytes.length ? nameEnd + bytes.readUInt32LE(at + 2) : Number.POSITIVE_INFINITY;
    if (end > bytes.length) throw protocolError("a report section that is cut off");
    sections.set(bytes.toString("utf8", at + 6, nameEnd), bytes.subarray(nameEnd, end));
    at = end;
  }
  return sections;
}
