import { posix } from "node:path";
import { z } from "zod";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { FileStat, FileType, SandboxFiles } from "../../../sandbox/index.js";
import { sandboxContext } from "../permissions.js";
import { fileUri, toFileUri } from "../wire/file-uri.js";
import { checkedParams, invalidRequest, RpcError, RpcErrorCode } from "../wire/messages.js";
import type { Workspaces } from "../workspaces.js";
import { listAtMost } from "./bounded-list.js";
import { missing, withFile } from "./file-errors.js";
import { walkTree } from "./walk.js";

/** In base64 this is less than 43 MiB, which fits in the longest message. */
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
const count = z.int().min(0);
const walkParams = z.looseObject({
  path: fileUri,
  options: z.looseObject({
    maxDepth: count,
    maxDirectories: count,
    maxEntries: count,
    followDirectorySymlinks: z.boolean(),
    pruneHiddenDirectories: z.boolean().nullish(),
  }),
  sandbox,
});
const watchParams = z.looseObject({ watchId: count, missing: z.array(fileUri) });

/** The maximums of Codex's own server. */
const WALK_MAXIMUMS = { depth: 64, directories: 10_000, entries: 50_000 };
const WALK_TIMEOUT_MS = 30_000;

/** The methods `fs/*` for one session. Every path is resolved inside a container. */
export class FileMethods {
  readonly #workspaces: Workspaces;
  readonly #closing = new AbortController();

  constructor(workspaces: Workspaces) {
    this.#workspaces = workspaces;
  }

  async readFile(given: unknown): Promise<object> {
    const { path, sandbox } = checkedParams(pathParams, given);
    return await withFile(path, async () => {
      const { files } = (await this.#workspaces.toRead(sandbox, path)).sandbox;
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
      const { files } = (await this.#workspaces.toRead(sandbox, path)).sandbox;
      if (await this.#isHidden(files, path)) throw missing();
      const link = await files.stat(path, { followSymlinks: false });
      const stat = link.type === "symlink" ? await files.stat(path) : link;
      return metadata(stat, link.type === "symlink");
    });
  }

  async canonicalize(given: unknown): Promise<object> {
    const { path, sandbox } = checkedParams(pathParams, given);
    return await withFile(path, async () => {
      const served = await this.#workspaces.toRead(sandbox, path);
      await served.sandbox.files.stat(path);
      const { exitCode, stdout } = await served.sandbox.exec(["readlink", "-zf", "--", path]);
      if (exitCode !== 0) throw missing();
      return { path: toFileUri(stdout.replace(/\0$/, "")) };
    });
  }

  async readDirectory(given: unknown): Promise<object> {
    const { path, sandbox } = checkedParams(pathParams, given);
    return await withFile(path, async () => {
      const { files } = (await this.#workspaces.toRead(sandbox, path)).sandbox;
      const { entries: found, hasMore } = await listAtMost(files, path, { maxEntries: MAX_ENTRIES });
      if (hasMore)
        throw new RpcError(`the directory has more than ${MAX_ENTRIES} entries`, {
          code: RpcErrorCode.internal,
        });
      const entries = [];
      for (const { name, type } of found)
        if (!(await this.#isHidden(files, join(path, name))))
          entries.push(entry(name, await followed(type, join(path, name))));
      return { entries };

      async function followed(type: FileType, link: string): Promise<FileType> {
        if (type !== "symlink") return type;
        return (await files.stat(link).catch(() => null))?.type ?? type;
      }
    });
  }

  /** Lists a whole tree, as far as the client's limits and brig's own allow. */
  async walk(given: unknown): Promise<object> {
    const { path, options, sandbox } = checkedParams(walkParams, given);
    refuseLimits(options);
    return await withFile(path, async () => {
      const { files } = (await this.#workspaces.toRead(sandbox, path)).sandbox;
      const isHidden = async (entry: string) => await this.#isHidden(files, entry);
      using limit = new TimeLimit(WALK_TIMEOUT_MS, this.#closing.signal);
      return await walkTree({ ...files, isHidden }, path, {
        ...options,
        pruneHiddenDirectories: options.pruneHiddenDirectories ?? false,
        signal: limit.signal,
      });
    });
  }

  /** Answers that brig watches no files. A client then looks for them each time that it needs them. */
  async watchMissing(given: unknown): Promise<object> {
    checkedParams(watchParams, given);
    return { watching: false };
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
        throw invalidRequest(
          type === "directory"
            ? "fs/copy requires recursive: true for directories"
            : "only files and directories are copied",
        );
      const copied = await served.sandbox.exec(["cp", "-a", "-T", "--", sourcePath, destinationPath]);
      if (copied.exitCode !== 0)
        throw new RpcError(copied.stderr.trim().slice(0, 1000), { code: RpcErrorCode.internal });
      return {};
    });
  }

  /** Whether it is an empty directory that brig made only so that nothing else gets its name. */
  async #isHidden(files: SandboxFiles, path: string): Promise<boolean> {
    return this.#workspaces.isPlaceholder(path) && (await files.list(path)).length === 0;
  }

  /** Ends the walks that are running, because nobody waits for their results any more. */
  close(): void {
    this.#closing.abort();
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

function refuseLimits(options: z.infer<typeof walkParams>["options"]): void {
  const { depth, directories, entries } = WALK_MAXIMUMS;
  if (options.maxDirectories === 0 || options.maxEntries === 0)
    throw invalidRequest("filesystem walk limits must be greater than zero");
  if (options.maxDepth > depth || options.maxDirectories > directories || options.maxEntries > entries)
    throw invalidRequest(
      `filesystem walk limits exceed maximums: depth=${depth}, directories=${directories}, entries=${entries}`,
    );
}
