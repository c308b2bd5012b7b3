import { posix } from "node:path";
import { type Readable, Transform, type TransformCallback } from "node:stream";
import { BrigError, isBrigError } from "../../../errors.js";
import type {
  DirectoryEntry,
  FileStat,
  FileType,
  ReceivedEntry,
  Sandbox,
  SandboxFiles,
  TarEntry,
} from "../../../sandbox/index.js";
import { readTar, streamTar, tarBytes } from "../../../sandbox/index.js";

/** What the top of an archive is called, whatever it is called where it comes from and where it goes. */
export const TOP = "top";

const PIECE_BYTES = 1024 * 1024;
/** The most of an archive that may come without being an entry or its content, since that is kept until the next entry. */
const MAX_HEAD_BYTES = 2 * 1024 * 1024;
/** Of one directory: they are in memory together. */
const MAX_ENTRIES = 200_000;
const MAX_LINKS = 40;
/** A larger file is written as it comes. */
const MAX_HELD_BYTES = 1024 * 1024;

/**
 * An archive of what is at a path of the sandbox. It has no FIFOs, sockets and devices, and nothing that a link leads to which is put into the path
 * meanwhile. Errors on the stream: `file.*`.
 */
export function readArchive(
  files: SandboxFiles,
  { path, top, signal }: { path: string; top: string; signal: AbortSignal },
): Readable {
  return streamTar(entriesBelow(files, { path, name: top, signal }));
}

/** About how long that archive is. Errors: `file.*`. */
export async function archiveBytes(
  files: SandboxFiles,
  { path, signal }: { path: string; signal: AbortSignal },
): Promise<number> {
  return await tarBytes(entriesBelow(files, { path, name: TOP, signal }));
}

async function* entriesBelow(files: SandboxFiles, { path, name, signal }: Place): AsyncGenerator<TarEntry> {
  const above = await withoutLinks(files, posix.dirname(path), signal);
  yield* entriesAt(files, { path: posix.join(above, posix.basename(path)), name, signal });
}

interface Place {
  /** In the sandbox. */
  path: string;
  /** In the archive. */
  name: string;
  signal: AbortSignal;
}

async function* entriesAt(files: SandboxFiles, { path, name, signal }: Place): AsyncGenerator<TarEntry> {
  const stat = await files.stat(path, { followSymlinks: false, refuseSymlinks: true, signal });
  const { mode, uid, gid, modifiedMs, sizeBytes, linkTarget } = stat;
  const entry = { path: name, mode, owner: { uid, gid }, modifiedAt: new Date(modifiedMs) };
  if (stat.type === "symlink") yield { ...entry, kind: "link", target: linkTarget ?? "" };
  else if (stat.type === "file")
    yield { ...entry, kind: "file", sizeBytes, content: () => contentOf(files, { path, stat, signal }) };
  if (stat.type !== "directory") return;
  yield { ...entry, kind: "directory" };
  const entries = await listed(files, path, signal);
  for (const inside of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    if (!Buffer.from(inside.nameBytes).equals(Buffer.from(inside.name)))
      throw new BrigError(`a name in ${path} is not UTF-8, so it cannot be copied`, { code: "file.failed" });
    yield* entriesAt(files, { path: posix.join(path, inside.name), name: `${name}/${inside.name}`, signal });
  }
}

/** Error: `file.too-large`. */
async function listed(files: SandboxFiles, path: string, signal: AbortSignal): Promise<DirectoryEntry[]> {
  const all: DirectoryEntry[] = [];
  await files.list(path, {
    signal,
    onEntries(entries) {
      if (all.length + entries.length > MAX_ENTRIES)
        throw new BrigError(`${path} has more than ${MAX_ENTRIES} entries, so it cannot be copied`, {
          code: "file.too-large",
        });
      for (const { name, nameBytes, type } of entries)
        all.push({ name, nameBytes: Buffer.from(nameBytes), type });
    },
  });
  return all;
}

/** Exactly as many bytes as the archive has announced. Error: `file.failed` if the file has become shorter since. */
async function* contentOf(
  files: SandboxFiles,
  { path, stat, signal }: { path: string; stat: FileStat; signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < stat.sizeBytes; ) {
    const lengthBytes = Math.min(PIECE_BYTES, stat.sizeBytes - at);
    const piece = await files.read(path, { offsetBytes: at, lengthBytes, refuseSymlinks: true, signal });
    if (piece.length === 0)
      throw new BrigError(`${path} became shorter while it was copied`, { code: "file.failed" });
    at += piece.length;
    yield piece;
  }
}

/**
 * Writes an archive into the sandbox, as the sandbox's own user: its top to `path`, or everything below `path` if it has no top. A link at `path` is
 * followed, but none below it: a program in the sandbox, or the archive itself, may have made it. Errors: `file.*`; `usage.invalid` for an archive
 * with names that lead elsewhere, or with what is neither a file nor a directory nor a symbolic link.
 */
export async function writeArchive(
  sandbox: Sandbox,
  archive: Readable,
  { path, hasTop, signal }: { path: string; hasTop: boolean; signal: AbortSignal },
): Promise<void> {
  const top = await withoutLinks(sandbox.files, path, signal);
  const heads = new HeadLimit();
  archive.on("error", (error) => heads.destroy(error));
  try {
    for await (const entry of readTar(archive.pipe(heads))) {
      heads.isOver();
      signal.throwIfAborted();
      const to = posix.join(top, innerPath(entry.path, hasTop));
      await writeEntry(sandbox, { ...entry, content: heads.counted(entry.content) }, { to, signal });
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BrigError || archive.errored !== null) throw error;
    throw new BrigError(`it is not a tar archive: ${error instanceof Error ? error.message : error}`, {
      code: "usage.invalid",
      cause: error,
    });
  } finally {
    archive.destroy();
  }
}

/** Passes an archive on while that gets somewhere. Error: `usage.invalid` for a head that has no end. */
class HeadLimit extends Transform {
  #bytes = 0;

  override _transform(piece: Buffer, _encoding: string, done: TransformCallback): void {
    this.#bytes += piece.length;
    if (this.#bytes <= MAX_HEAD_BYTES) done(null, piece);
    else done(new BrigError("the archive has a head that is too long", { code: "usage.invalid" }));
  }

  /** An entry has come of what was passed on, or a piece of its content. */
  isOver(): void {
    this.#bytes = 0;
  }

  async *counted(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of content) {
      this.isOver();
      yield piece;
    }
  }
}

/** The same path through directories only, as far as there are any. Error: `file.failed` for links that lead in a circle. */
async function withoutLinks(files: SandboxFiles, path: string, signal: AbortSignal): Promise<string> {
  let whole = "/";
  const names = path.split("/");
  for (let links = 0; names.length > 0; ) {
    const name = names.shift() as string;
    const at = posix.join(whole, name);
    const stat = await files.stat(at, { followSymlinks: false, signal }).catch((error: unknown) => {
      if (isBrigError(error, "file.not-found")) return null;
      throw error;
    });
    if (stat?.type !== "symlink") whole = at;
    else if (++links > MAX_LINKS)
      throw new BrigError(`${path} leads through too many links`, { code: "file.failed", errno: "ELOOP" });
    else {
      const target = stat.linkTarget ?? "";
      if (target.startsWith("/")) whole = "/";
      names.unshift(...target.split("/"));
    }
  }
  return whole;
}

/** The path below the top of an archive. Error: `usage.invalid`. */
export function innerPath(path: string, hasTop: boolean): string {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  const isOutside = path.startsWith("/") || names.includes("..") || path.includes("\0");
  if (isOutside || (hasTop && names[0] !== TOP))
    throw new BrigError(`the archive has the name ${JSON.stringify(path)}, which leads out of it`, {
      code: "usage.invalid",
    });
  return names.slice(hasTop ? 1 : 0).join("/");
}

async function writeEntry(
  sandbox: Sandbox,
  { kind, mode, target, sizeBytes, content, path }: ReceivedEntry,
  { to, signal }: { to: string; signal: AbortSignal },
): Promise<void> {
  const { files } = sandbox;
  const options = { mode: mode & 0o777, refuseSymlinks: true, signal };
  if (kind === "directory") return await files.mkdir(to, { ...options, recursive: true });
  if (kind !== "file" && kind !== "symbolic-link")
    throw new BrigError(`${JSON.stringify(path)} is neither a file nor a directory nor a symbolic link`, {
      code: "usage.invalid",
    });
  // Archives need not have entries for their directories.
  await files.mkdir(posix.dirname(to), { recursive: true, refuseSymlinks: true, signal });
  if (kind === "symbolic-link") return await run(sandbox, ["ln", "-sfn", "--", target ?? "", to], signal);
  // A link is replaced, and not what it leads to.
  if ((await typeAt(files, to, signal)) === "symlink")
    await files.remove(to, { refuseSymlinks: true, signal });
  if (sizeBytes > MAX_HELD_BYTES) return await files.writeStream(to, content, options);
  const pieces: Uint8Array[] = [];
  for await (const piece of content) pieces.push(piece);
  await files.write(to, Buffer.concat(pieces), options);
}

async function typeAt(files: SandboxFiles, path: string, signal: AbortSignal): Promise<FileType | null> {
  try {
    return (await files.stat(path, { followSymlinks: false, signal })).type;
  } catch (error) {
    if (isBrigError(error, "file.not-found")) return null;
    throw error;
  }
}

/** Error: `file.failed` if it does not exit with 0. */
async function run(sandbox: Sandbox, argv: readonly string[], signal: AbortSignal): Promise<void> {
  const { exitCode, stderr } = await sandbox.exec(argv, { signal, maxOutputBytes: 1000 });
  if (exitCode === 0) return;
  throw new BrigError(`${argv[0]} failed in the sandbox: ${stderr.trim()}`, { code: "file.failed" });
}
