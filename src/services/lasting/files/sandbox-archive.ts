import { posix } from "node:path";
import type { Readable } from "node:stream";
import { BrigError } from "../../../errors.js";
import type { FileStat, ReceivedEntry, Sandbox, SandboxFiles, TarEntry } from "../../../sandbox/index.js";
import { readTar, streamTar } from "../../../sandbox/index.js";

/** What the top of an archive is called, whatever it is called where it comes from and where it goes. */
export const TOP = "top";

const PIECE_BYTES = 1024 * 1024;
/** A larger file goes through a program of the sandbox, so that it need not be in memory. */
const MAX_HELD_BYTES = 8 * 1024 * 1024;

/** An archive of what is at a path of the sandbox. It has no FIFOs, sockets and devices. Errors on the stream: `file.*`. */
export function readArchive(
  files: SandboxFiles,
  { path, top, signal }: { path: string; top: string; signal: AbortSignal },
): Readable {
  return streamTar(entriesAt(files, { path, name: top, signal }));
}

interface Place {
  /** In the sandbox. */
  path: string;
  /** In the archive. */
  name: string;
  signal: AbortSignal;
}

async function* entriesAt(files: SandboxFiles, { path, name, signal }: Place): AsyncGenerator<TarEntry> {
  const stat = await files.stat(path, { followSymlinks: false, signal });
  const { mode, uid, gid, modifiedMs, sizeBytes, linkTarget } = stat;
  const entry = { path: name, mode, owner: { uid, gid }, modifiedAt: new Date(modifiedMs) };
  if (stat.type === "symlink") yield { ...entry, kind: "link", target: linkTarget ?? "" };
  else if (stat.type === "file")
    yield { ...entry, kind: "file", sizeBytes, content: () => contentOf(files, { path, stat, signal }) };
  if (stat.type !== "directory") return;
  yield { ...entry, kind: "directory" };
  const entries = await files.list(path, { signal });
  for (const inside of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    if (!Buffer.from(inside.nameBytes).equals(Buffer.from(inside.name)))
      throw new BrigError(`a name in ${path} is not UTF-8, so it cannot be copied`, { code: "file.failed" });
    yield* entriesAt(files, { path: posix.join(path, inside.name), name: `${name}/${inside.name}`, signal });
  }
}

/** Exactly as many bytes as the archive has announced. Error: `file.failed` if the file has become shorter since. */
async function* contentOf(
  files: SandboxFiles,
  { path, stat, signal }: { path: string; stat: FileStat; signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < stat.sizeBytes; ) {
    const lengthBytes = Math.min(PIECE_BYTES, stat.sizeBytes - at);
    const piece = await files.read(path, { offsetBytes: at, lengthBytes, signal });
    if (piece.length === 0)
      throw new BrigError(`${path} became shorter while it was copied`, { code: "file.failed" });
    at += piece.length;
    yield piece;
  }
}

/**
 * Writes an archive into the sandbox, as the sandbox's own user: its top to `path`, or everything below `path` if it has no top. Errors: `file.*`;
 * `usage.invalid` for an archive with names that lead elsewhere, or with what is neither a file nor a directory nor a symbolic link.
 */
export async function writeArchive(
  sandbox: Sandbox,
  archive: Readable,
  { path, hasTop, signal }: { path: string; hasTop: boolean; signal: AbortSignal },
): Promise<void> {
  for await (const entry of readTar(archive)) {
    signal.throwIfAborted();
    const inside = innerPath(entry.path, hasTop);
    await writeEntry(sandbox, entry, { to: posix.join(path, inside), signal });
  }
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
  const permissions = mode & 0o777;
  if (kind === "directory")
    return await sandbox.files.mkdir(to, { recursive: true, mode: permissions, signal });
  if (kind === "symbolic-link") return await run(sandbox, ["ln", "-sfn", "--", target ?? "", to], { signal });
  if (kind !== "file")
    throw new BrigError(`${JSON.stringify(path)} is neither a file nor a directory nor a symbolic link`, {
      code: "usage.invalid",
    });
  if (sizeBytes <= MAX_HELD_BYTES) {
    const pieces: Uint8Array[] = [];
    for await (const piece of content) pieces.push(piece);
    return await sandbox.files.write(to, Buffer.concat(pieces), { mode: permissions, signal });
  }
  const script = 'cat > "$1" && chmod "$2" "$1"';
  await run(sandbox, ["sh", "-c", script, "sh", to, permissions.toString(8)], { signal, input: content });
}

/** Error: `file.failed` if it does not exit with 0. */
async function run(
  sandbox: Sandbox,
  argv: readonly string[],
  { signal, input }: { signal: AbortSignal; input?: AsyncIterable<Uint8Array> },
): Promise<void> {
  const process = await sandbox.spawn(argv, { signal, mergeOutput: true });
  let said = "";
  process.stdout.on("data", (chunk: Buffer) => {
    if (said.length < 1000) said += chunk.toString();
  });
  process.stdin?.on("error", () => undefined);
  for await (const piece of input ?? []) {
    if (process.stdin?.writable !== true) continue;
    await new Promise<void>((resolve) => process.stdin?.write(piece, () => resolve()));
  }
  process.stdin?.end();
  const { exitCode } = await process.exit;
  if (exitCode === 0) return;
  throw new BrigError(`${argv[0]} failed in the sandbox: ${said.trim()}`, { code: "file.failed" });
}
