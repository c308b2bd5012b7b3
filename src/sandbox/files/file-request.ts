import { BrigError, type ErrorCode, isBrigError } from "../../errors.js";
import { namesByNumber } from "../../lib/names-by-number.js";
import { protocolError } from "../channel/frames.js";
import {
  EntryType,
  EXTENT_BYTES_MAX,
  EXTENT_HEAD_BYTES,
  FILE_HEAD_BYTES,
  FileOperation,
  FrameType,
  NOT_REGULAR,
  PathFlag,
} from "../channel/protocol.js";
import type { FileType } from "../portable-sandbox.js";
import { Command, type CommandContext } from "../process/command.js";
import { errnoName } from "../process/errno-names.js";
import type { ExitRecord } from "../process/exit-record.js";
import { lengthPrefixed } from "../process/spawn-request.js";

const fileTypes: ReadonlyMap<number, FileType> = namesByNumber(EntryType);

export function fileTypeOf(number: number): FileType {
  return fileTypes.get(number) ?? "unknown";
}

/** One file request to the runner, as PROTOCOL.md defines it. */
export interface FileRequest {
  operation: keyof typeof FileOperation;
  path: string | Uint8Array;
  second?: string | Uint8Array;
  flags?: number;
  refuseSymlinks?: boolean | undefined;
  mode?: number;
  offsetBytes?: number | bigint;
  lengthBytes?: number;
  /**
   * If this is an iterable, no further piece is taken once the operation is over. If the iterable throws, the
   * operation is ended.
   */
  input?: Uint8Array | AsyncIterable<Uint8Array>;
  signal?: AbortSignal | undefined;
  /** A returned promise pauses the output. */
  onOutput?: (data: Buffer) => unknown;
}

/** Errors: `file.*` when the operation failed, or the signal's reason after an abort. */
export async function run(context: CommandContext, request: FileRequest): Promise<ExitRecord> {
  request.signal?.throwIfAborted();
  const record = await perform(context, request);
  request.signal?.throwIfAborted();
  if (record.kind !== "file" || record.errno !== 0) throw fileError(request, record);
  return record;
}

/** Works like `run`, but returns null when the operation fails with this errno. */
export async function runUnless(
  context: CommandContext,
  request: FileRequest,
  errno: string,
): Promise<ExitRecord | null> {
  try {
    return await run(context, request);
  } catch (error) {
    if (isBrigError(error) && error.errno === errno) return null;
    throw error;
  }
}

/** Returns the outcome, also of a failed or aborted operation. */
export async function perform(context: CommandContext, request: FileRequest): Promise<ExitRecord> {
  const { signal, input = Buffer.alloc(0) } = request;
  const command = new Command(
    context.link,
    { type: FrameType.file, payload: encodeFileRequest(request), isLast: context.isLast, signal },
    { onOutput: (data) => request.onOutput?.(data), onStuck: context.onStuck },
  );
  const written = input instanceof Uint8Array ? command.writeAll(input) : writePieces(command, input);
  const [record] = await Promise.all([command.ended, written]);
  return record;
}

async function writePieces(command: Command, input: AsyncIterable<Uint8Array>): Promise<void> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  command.ended.then(over, over);
  try {
    for await (const piece of input) {
      if (isOver) return;
      await command.write(Buffer.from(piece));
    }
    command.endInput();
  } catch (error) {
    command.kill();
    throw error;
  }
}

/** The path of these is something else, or empty. */
const hasNoPath: ReadonlySet<FileRequest["operation"]> = new Set(["report", "owners", "waits"]);

export function encodeFileRequest(request: FileRequest): Buffer {
  const head = Buffer.alloc(FILE_HEAD_BYTES);
  head[0] = FileOperation[request.operation];
  head[1] = (request.flags ?? 0) | (request.refuseSymlinks ? PathFlag.withoutLinks : 0);
  head.writeUInt32LE(request.mode ?? 0, 4);
  head.writeBigUInt64LE(checkedCount(request.offsetBytes, "offsetBytes"), 8);
  head.writeBigUInt64LE(checkedCount(request.lengthBytes, "lengthBytes"), 16);
  const path = hasNoPath.has(request.operation) ? request.path : checkedPath(request.path);
  return Buffer.concat([
    head,
    lengthPrefixed(Buffer.from(path)),
    lengthPrefixed(Buffer.from(request.second ?? "")),
  ]);
}

function checkedCount(value: number | bigint | undefined, name: string): bigint {
  if (value === undefined) return 0n;
  if (typeof value === "bigint" && value >= 0n && value < 1n << 63n) return value;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw new BrigError(`${name} must be a whole number of bytes, not ${value}`, { code: "file.failed" });
}

function pathText(path: string | Uint8Array): string {
  return path instanceof Uint8Array ? Buffer.from(path).toString("utf8") : String(path);
}

export function checkedPath<Path extends string | Uint8Array>(path: Path): Path {
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
    hint: "the sandbox's mode makes this path read-only",
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

const throughLink: Failure = { code: "file.symlink", text: "the path leads through a symbolic link" };

export function tooLarge(path: string | Uint8Array): BrigError {
  const { code, text, hint } = codes.EFBIG;
  return new BrigError(`cannot read ${pathText(path)}: ${text}`, { code, hint });
}

/** Whether the error means that a regular file was removed or replaced since somebody saw it. */
export function isGone(error: unknown): boolean {
  const gone = ["file.not-found", "file.not-regular", "file.not-directory", "file.symlink"] as const;
  return gone.some((code) => isBrigError(error, code));
}

const failureOf: ReadonlyMap<string, Failure> = new Map(Object.entries(codes));

export function fileError(request: FileRequest, record: ExitRecord): BrigError {
  const { operation } = request;
  const path = pathText(request.path);
  if (record.errno >= NOT_REGULAR) {
    const type = fileTypeOf(record.errno - NOT_REGULAR);
    return new BrigError(`cannot ${operation} ${path}: it is not a regular file but a ${type}`, {
      code: "file.not-regular",
    });
  }
  return errnoError(operation, path, {
    number: record.kind === "file" ? record.errno : EIO,
    refuseSymlinks: request.refuseSymlinks,
  });
}

const EIO = 5;

export function errnoError(
  operation: string,
  path: string,
  { number, refuseSymlinks = false }: { number: number; refuseSymlinks?: boolean | undefined },
): BrigError {
  const errno = errnoName(number);
  const known = errno === "ELOOP" && refuseSymlinks ? throughLink : failureOf.get(errno);
  return new BrigError(`cannot ${operation} ${path}: ${known?.text ?? errno}`, {
    code: known?.code ?? "file.failed",
    hint: known?.hint,
    errno,
    cause: Object.assign(new Error(errno), { code: errno, errno: -number }),
  });
}

/**
 * A part of a file that is no hole. The pieces of a file come in order, and what is between them is holes. The last one
 * has no bytes: its offset is the size of the file.
 */
export interface ContentPiece {
  offset: number;
  data: Buffer;
}

/** The content of a file: all of it, or its pieces without its holes. */
export type Content = Buffer | AsyncIterable<ContentPiece>;

/** Parses a file with its holes as the runner writes it. Error: `protocol.invalid`. */
export class ExtentParser {
  #head: Buffer = Buffer.alloc(0);
  /** The place where the next bytes of the extent belong, and the number of bytes that are missing. */
  #offset = 0;
  #left = 0;
  #isOver = false;

  *push(bytes: Buffer): Generator<ContentPiece> {
    let at = 0;
    while (at < bytes.length) {
      if (this.#isOver) throw protocolError("more of a file behind its end");
      if (this.#left === 0) {
        const more = bytes.subarray(at, at + EXTENT_HEAD_BYTES - this.#head.length);
        at += more.length;
        this.#head = Buffer.concat([this.#head, more]);
        if (this.#head.length < EXTENT_HEAD_BYTES) return;
        this.#begin(this.#head);
        this.#head = Buffer.alloc(0);
        if (this.#isOver) yield { offset: this.#offset, data: Buffer.alloc(0) };
        continue;
      }
      const data = bytes.subarray(at, at + this.#left);
      yield { offset: this.#offset, data };
      at += data.length;
      this.#offset += data.length;
      this.#left -= data.length;
    }
  }

  end(): void {
    if (!this.#isOver) throw protocolError("a file that is cut off");
  }

  #begin(head: Buffer): void {
    const [offset, length] = [Number(head.readBigUInt64LE(0)), head.readUInt32LE(8)];
    if (!Number.isSafeInteger(offset + length) || offset < this.#offset || length > EXTENT_BYTES_MAX)
      throw protocolError("a part of a file in an impossible place");
    this.#offset = offset;
    this.#left = length;
    this.#isOver = length === 0;
  }
}

/** The same way back. */
export async function* encodeExtents(pieces: AsyncIterable<ContentPiece>): AsyncGenerator<Buffer> {
  for await (const { offset, data } of pieces) {
    if (data.length === 0) yield extentHead(offset, 0);
    for (let at = 0; at < data.length; at += EXTENT_BYTES_MAX) {
      const some = data.subarray(at, at + EXTENT_BYTES_MAX);
      yield Buffer.concat([extentHead(offset + at, some.length), some]);
    }
  }
}

function extentHead(offset: number, length: number): Buffer {
  const head = Buffer.alloc(EXTENT_HEAD_BYTES);
  head.writeBigUInt64LE(BigInt(offset), 0);
  head.writeUInt32LE(length, 8);
  return head;
}
