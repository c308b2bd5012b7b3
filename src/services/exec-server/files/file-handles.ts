import { z } from "zod";
import type { Sandbox } from "../../../sandbox/index.js";
import { isFileError, osErrors } from "../../../tools/index.js";
import { sandboxContext } from "../permissions.js";
import type { ServedSandbox } from "../sandbox-set.js";
import { fileUri } from "../wire/file-uri.js";
import { checkedParams, invalidRequest, RpcError, RpcErrorCode } from "../wire/messages.js";
import type { Workspaces } from "../workspaces.js";
import { notAFile, osFailure, withFile } from "./file-errors.js";

/** These three limits are those of Codex's own server. */
const MAX_HANDLES = 128;
const MAX_HANDLE_ID_BYTES = 32;
const MAX_BLOCK_BYTES = 1024 * 1024;
/** Linux has signed 64-bit file offsets, so every offset is smaller than this. */
const OFFSET_LIMIT = 2 ** 63;

const handleId = z.string();
const whole = z.number().min(0).refine(Number.isInteger, { error: "not a whole number" });
const openParams = z.looseObject({
  handleId,
  path: fileUri,
  mode: z.enum(["read", "replace"]).nullish(),
  sandbox: sandboxContext.nullish(),
});
const readParams = z.looseObject({ handleId, offset: whole, len: whole });
const writeParams = z.looseObject({
  handleId,
  offset: whole,
  chunk: z.base64().transform((text) => Buffer.from(text, "base64")),
});
const closeParams = z.looseObject({ handleId });

/** An open file. Every block is read or written in the sandbox in which the file was opened. */
interface Handle {
  mode: "read" | "replace";
  path: string;
  served: ServedSandbox;
  /**
   * Device and inode when the file was opened: each block uses the path again, which may lead to another
   * file.
   */
  identity: string;
}

/** A handle id that is in use. It has no handle while the file is still being opened. */
interface Place {
  handle?: Handle;
}

/** The methods that read or write a file in blocks, for one session. */
export class FileHandles {
  readonly #workspaces: Workspaces;
  readonly #places = new Map<string, Place>();

  constructor(workspaces: Workspaces) {
    this.#workspaces = workspaces;
  }

  async open(given: unknown): Promise<object> {
    const { handleId, path, mode, sandbox } = checkedParams(openParams, given);
    this.#refuseHandle(handleId);
    const place: Place = {};
    this.#places.set(handleId, place);
    try {
      // If the client closes the handle or disconnects during this wait, `place` is no longer in the map.
      place.handle = await withFile(path, async () =>
        mode === "replace"
          ? await toReplace(path, await this.#workspaces.sandboxFor(sandbox, path))
          : await toRead(path, await this.#workspaces.toRead(sandbox, path)),
      );
      return { handleId };
    } catch (error) {
      this.#forget(handleId, place);
      throw error;
    }
  }

  async readBlock(given: unknown): Promise<object> {
    const { handleId, offset, len } = checkedParams(readParams, given);
    refuseLength("read", len);
    const { place, handle } = this.#opened(handleId);
    try {
      if (handle.mode !== "read") throw osFailure(badDescriptor, RpcErrorCode.internal);
      if (offset >= OFFSET_LIMIT) throw osFailure(osErrors.EINVAL, RpcErrorCode.invalidRequest);
      const data = await withFile(handle.path, async () => await read(handle, { offset, len }));
      return { chunk: data.toString("base64"), eof: data.length < len };
    } catch (error) {
      this.#forget(handleId, place);
      throw error;
    }
  }

  async writeBlock(given: unknown): Promise<object> {
    const { handleId, offset, chunk } = checkedParams(writeParams, given);
    refuseLength("write", chunk.length);
    const { mode, path, served, identity } = this.#opened(handleId).handle;
    if (mode !== "replace") throw osFailure(badDescriptor, RpcErrorCode.internal);
    if (offset + chunk.length >= OFFSET_LIMIT)
      throw invalidRequest("file write range exceeds the signed 64-bit file offset limit");
    if (!Number.isSafeInteger(offset + chunk.length)) throw osFailure(osErrors.EFBIG, RpcErrorCode.internal);
    await withFile(path, async () => {
      await refuseOther(served, { path, identity });
      await writeAt(served.sandbox, path, { offset, data: chunk });
    });
    return {};
  }

  async close(given: unknown): Promise<object> {
    const { handleId } = checkedParams(closeParams, given);
    refuseLongId(handleId);
    this.#places.delete(handleId);
    return {};
  }

  /** Forgets every handle. A handle ends with the connection on which it was opened. */
  closeAll(): void {
    this.#places.clear();
  }

  #refuseHandle(handleId: string): void {
    refuseLongId(handleId);
    if (this.#places.has(handleId)) throw invalidRequest(`file handle \`${handleId}\` already exists`);
    if (this.#places.size >= MAX_HANDLES)
      throw invalidRequest(`at most ${MAX_HANDLES} file handles may be open per connection`);
  }

  #opened(handleId: string): { place: Place; handle: Handle } {
    refuseLongId(handleId);
    const place = this.#places.get(handleId);
    if (place?.handle !== undefined) return { place, handle: place.handle };
    throw new RpcError(`unknown file handle \`${handleId}\``, { code: RpcErrorCode.notFound });
  }

  #forget(handleId: string, place: Place): void {
    if (this.#places.get(handleId) === place) this.#places.delete(handleId);
  }
}

const badDescriptor = { number: 9, text: "Bad file descriptor" };

async function toRead(path: string, served: ServedSandbox): Promise<Handle> {
  const { files } = served.sandbox;
  const identity = await identityOf(served, path);
  // Fails unless this is a regular file that may be read.
  await files.read(path, { lengthBytes: 1 });
  return { mode: "read", path, served, identity };
}

async function toReplace(path: string, served: ServedSandbox): Promise<Handle> {
  await served.sandbox.files.write(path, "");
  return { mode: "replace", path, served, identity: await identityOf(served, path) };
}

/**
 * Reads a block. Fails if the path now leads to another file, so that the client gets no byte of that file.
 */
async function read(handle: Handle, { offset, len }: { offset: number; len: number }): Promise<Buffer> {
  const { served, path } = handle;
  const data = Number.isSafeInteger(offset + len)
    ? await served.sandbox.files.read(path, { offsetBytes: offset, lengthBytes: len })
    : Buffer.alloc(0);
  await refuseOther(served, handle);
  return data;
}

async function refuseOther(
  served: ServedSandbox,
  { path, identity }: Pick<Handle, "path" | "identity">,
): Promise<void> {
  const current = await identityOf(served, path).catch((error: unknown) => {
    if (isFileError(error)) return null;
    throw error;
  });
  if (current !== identity)
    throw new RpcError(`${JSON.stringify(path)} has been replaced or removed since it was opened`, {
      code: RpcErrorCode.internal,
    });
}

async function identityOf({ sandbox }: ServedSandbox, path: string): Promise<string> {
  const { type, dev, ino } = await sandbox.files.stat(path);
  if (type !== "file") throw notAFile(path);
  return `${dev}:${ino}`;
}

function refuseLength(verb: "read" | "write", length: number): void {
  if (length < 1 || length > MAX_BLOCK_BYTES)
    throw invalidRequest(`file ${verb} block length must be between 1 and ${MAX_BLOCK_BYTES}`);
}

function refuseLongId(handleId: string): void {
  if (Buffer.byteLength(handleId) > MAX_HANDLE_ID_BYTES)
    throw invalidRequest(`file handle ID must not exceed ${MAX_HANDLE_ID_BYTES} bytes`);
}

const TIMEOUT_MS = 30_000;
const LARGEST_UNIT_BYTES = 1024 * 1024;

/**
 * Writes into an existing file at an offset. Uses the image's `dd`, because the runner can only replace whole
 * files. `dd` counts the offset in units of a chosen size, which here is the largest power of two that
 * divides the offset.
 */
async function writeAt(
  sandbox: Pick<Sandbox, "exec">,
  path: string,
  { offset, data }: { offset: number; data: Buffer },
): Promise<void> {
  let unit = LARGEST_UNIT_BYTES;
  while (offset % unit !== 0) unit /= 2;
  const { exitCode, stderr, timedOut } = await sandbox.exec(
    ["dd", `of=${path}`, `seek=${offset / unit}`, "ibs=65536", `obs=${unit}`, "conv=notrunc"],
    { stdin: data, env: { LC_ALL: "C" }, timeoutMs: TIMEOUT_MS, maxOutputBytes: 4096 },
  );
  if (exitCode === 0) return;
  throw new RpcError(reasonOf({ exitCode, stderr, timedOut }), { code: RpcErrorCode.internal });
}

function reasonOf({
  exitCode,
  stderr,
  timedOut,
}: {
  exitCode: number;
  stderr: string;
  timedOut: boolean;
}): string {
  if (timedOut) return `the write took longer than ${TIMEOUT_MS / 1000} seconds`;
  if (exitCode === 127)
    return "the image has no dd, which brig needs to write a file in blocks: choose an image with coreutils or busybox";
  return stderr.split("\n").find((line) => line.startsWith("dd: ")) ?? `dd ended with ${exitCode}`;
}
