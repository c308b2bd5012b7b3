import { posix } from "node:path";
import { z } from "zod";
import type { FileStat, FileType } from "../sandbox/sandbox-types.js";
import { describeOsError, isFileError, osErrors, osErrorText } from "../tools/os-error.js";
import { type SandboxContext, sandboxContext } from "./permissions.js";
import type { ServedSandbox } from "./sandbox-set.js";
import { fileUri, toFileUri } from "./wire/file-uri.js";
import { checkedParams, RpcError, RpcErrorCode } from "./wire/messages.js";
import type { Workspaces } from "./workspaces.js";

/** In base64 it is two thirds of the longest message. */
const MAX_READ_BYTES = 32 * 1024 * 1024;
const MAX_COPY_BYTES = 256 * 1024 * 1024;
const MAX_ENTRIES = 100_000;

const sandbox = sandboxContext.nullish();
const pathParams = z.looseObject({ path: fileUri, sandbox });
const writeParams = z.looseObject({
  path: fileUri,
  dataBase64: z.base64().transform((text) => Buffer.from(text, "base64")),
  sandbox,
});
const createDirectoryParams = z.looseObject({ path: fileUri, recursive: z.boolean().nullish(), sandbox });
const removeParams = z.looseObject({
  path: fileUri,
  recursive: z.boolean().nullish(),
  force: z.boolean().nullish(),
  sandbox,
});
const copyParams = z.looseObject({
  sourcePath: fileUri,
  destinationPath: fileUri,
  recursive: z.boolean(),
  sandbox,
});

/** The methods `fs/*` for one session. Every path is resolved inside a container. */
export class FileMethods {
  readonly #workspaces: Workspaces;

  constructor(workspaces: Workspaces) {
    this.#workspaces = workspaces;
  }

  async readFile(given: unknown): Promise<object> {
    const { path, sandbox } = checkedParams(pathParams, given);
    return await withFile(path, async () => {
      const { files } = (await this.#toRead(path, sandbox)).sandbox;
      const data = await files.read(path, { maxBytes: MAX_READ_BYTES });
      return { dataBase64: data.toString("base64") };
    });
  }

  async writeFile(given: unknown): Promise<object> {
    const { path, dataBase64, sandbox } = checkedParams(writeParams, given);
    return await withFile(path, async () => {
      const { files } = (await this.#workspaces.sandboxFor(sandbox, path)).sandbox;
      await files.write(path, dataBase64);
      return {};
    });
  }

  async createDirectory(given: unknown): Promise<object> {
    const { path, recursive, sandbox } = checkedParams(createDirectoryParams, given);
    return await withFile(path, async () => {
      const { files } = (await this.#workspaces.sandboxFor(sandbox, path)).sandbox;
      await files.mkdir(path, { recursive: recursive ?? true });
      return {};
    });
  }

  async getMetadata(given: unknown): Promise<object> {
    const { path, sandbox } = checkedParams(pathParams, given);
    return await withFile(path, async () => {
      const { files } = (await this.#toRead(path, sandbox)).sandbox;
      if (this.#workspaces.isPlaceholder(path) && (await files.list(path)).length === 0) throw missing();
      const link = await files.stat(path, { followSymlinks: false });
      const stat = link.type === "symlink" ? await files.stat(path) : link;
      return metadata(stat, link.type === "symlink");
    });
  }

  async canonicalize(given: unknown): Promise<object> {
    const { path, sandbox } = checkedParams(pathParams, given);
    return await withFile(path, async () => {
      const served = await this.#toRead(path, sandbox);
      await served.sandbox.files.stat(path);
      const { exitCode, stdout } = await served.sandbox.exec(["readlink", "-zf", "--", path]);
      if (exitCode !== 0) throw missing();
      return { path: toFileUri(stdout.replace(/\0$/, "")) };
    });
  }

  async readDirectory(given: unknown): Promise<object> {
    const { path, sandbox } = checkedParams(pathParams, given);
    return await withFile(path, async () => {
      const { files } = (await this.#toRead(path, sandbox)).sandbox;
      const found = await files.list(path);
      if (found.length > MAX_ENTRIES)
        throw new RpcError(`the directory has more than ${MAX_ENTRIES} entries`, {
          code: RpcErrorCode.internal,
        });
      const entries = [];
      for (const { name, type } of found)
        entries.push(await entry(name, await followed(type, join(path, name))));
      return { entries };

      async function followed(type: FileType, link: string): Promise<FileType> {
        if (type !== "symlink") return type;
        return (await files.stat(link).catch(() => null))?.type ?? type;
      }
    });
  }

  async remove(given: unknown): Promise<object> {
    const { path, recursive, force, sandbox } = checkedParams(removeParams, given);
    return await withFile(path, async () => {
      const { files } = (await this.#workspaces.sandboxFor(sandbox, path)).sandbox;
      await files.remove(path, { recursive: recursive ?? true, force: force ?? true });
      return {};
    });
  }

  /** Copies a file, or a directory with everything in it. */
  async copy(given: unknown): Promise<object> {
    const { sourcePath, destinationPath, recursive, sandbox } = checkedParams(copyParams, given);
    return await withFile(sourcePath, async () => {
      const served = await this.#workspaces.sandboxFor(sandbox, destinationPath);
      const { files } = served.sandbox;
      const { type, mode } = await files.stat(sourcePath);
      if (type === "file") {
        const data = await files.read(sourcePath, { maxBytes: MAX_COPY_BYTES });
        await files.write(destinationPath, data, { mode });
        return {};
      }
      if (type !== "directory" || !recursive)
        throw new RpcError(
          type === "directory"
            ? "fs/copy requires recursive: true for directories"
            : "only files and directories are copied",
          { code: RpcErrorCode.invalidRequest },
        );
      const copied = await served.sandbox.exec(["cp", "-a", "-T", "--", sourcePath, destinationPath]);
      if (copied.exitCode !== 0)
        throw new RpcError(copied.stderr.trim().slice(0, 1000), { code: RpcErrorCode.internal });
      return {};
    });
  }

  /** Without a profile the client reads for itself, before it knows what a model will do. */
  async #toRead(path: string, context: SandboxContext | null | undefined): Promise<ServedSandbox> {
    return context ? await this.#workspaces.sandboxFor(context, path) : await this.#workspaces.toLook(path);
  }
}

function join(directory: string, name: string): string {
  return posix.join(directory, name);
}

function entry(fileName: string, type: FileType): object {
  return { fileName, isDirectory: type === "directory", isFile: type === "file" };
}

function metadata({ type, sizeBytes, modifiedMs }: FileStat, isSymlink: boolean): object {
  return {
    isDirectory: type === "directory",
    isFile: type === "file",
    isSymlink,
    size: sizeBytes,
    createdAtMs: 0,
    modifiedAtMs: Math.floor(modifiedMs),
  };
}

function missing(): RpcError {
  return new RpcError(describeOsError(osErrors.ENOENT), { code: RpcErrorCode.notFound });
}

/** What goes wrong with a file, in the codes and the words of Codex's own server. */
async function withFile(path: string, operation: () => Promise<object>): Promise<object> {
  try {
    return await operation();
  } catch (cause) {
    if (!isFileError(cause)) throw cause;
    const isNoFile = cause.code === "file.not-regular" || cause.code === "file.is-directory";
    const message = isNoFile ? `path \`${path}\` is not a file` : osErrorText(cause);
    throw new RpcError(message, {
      code: isNoFile ? RpcErrorCode.invalidRequest : codeOf(cause.errno),
      cause,
    });
  }
}

function codeOf(errno: string | undefined): number {
  if (errno === "ENOENT") return RpcErrorCode.notFound;
  return errno === "EACCES" || errno === "EPERM" ? RpcErrorCode.invalidRequest : RpcErrorCode.internal;
}
