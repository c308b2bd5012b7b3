import { constants, type Stats } from "node:fs";
import { access, lstat, open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import { readStart } from "../../lib/bounded-file.js";
import { errnoOf } from "../../lib/errno.js";

export const WORKSPACE_FILE_MAX_BYTES = 64 * 1024;

export type WorkspaceRead =
  | { kind: "absent" }
  | { kind: "text"; text: string }
  /** It is not a regular file in a real directory. */
  | { kind: "refused"; reason: string };

/** Reads a configuration file of the workspace, by absolute path. Its content is hostile. */
export type WorkspaceReader = (path: string) => Promise<WorkspaceRead>;

/** Linux's O_PATH, for which Node has no constant: names a file without opening it, so no FIFO blocks. */
const O_PATH = 0o10_000_000;

/**
 * Reads `DIR/config.toml` of a workspace in this process, since the mode of the sandbox depends on it. An
 * agent may have put anything there, or may do so now. So nothing is opened before it is known to be a
 * regular file in a real directory, and descriptors of both ensure that the file that was checked is the one
 * that is read. Without /proc the check is by name, and a running agent could swap the file; all it could
 * gain is that another file of this user tightens the settings. A link, a FIFO or a device is `refused`. A
 * file that is too large, not UTF-8 or not readable is `config.invalid`, since it may have meant to tighten.
 */
export async function readWorkspaceFile(
  path: string,
  options: { usesProc?: boolean | undefined } = {},
): Promise<WorkspaceRead> {
  const directory = dirname(path);
  try {
    const usesProc = options.usesProc ?? (await exists("/proc/self/fd"));
    await using folder = await pin(directory, { usesProc });
    if (folder.stat.isSymbolicLink()) return refused(`${directory} is a symbolic link`);
    if (!folder.stat.isDirectory()) return { kind: "absent" };
    await using node = await pin(join(folder.path, basename(path)), { usesProc });
    if (node.stat.isSymbolicLink()) return refused("it is a symbolic link");
    if (!node.stat.isFile()) return refused("it is not a regular file");
    return { kind: "text", text: await readPinned(node, path) };
  } catch (cause) {
    if (cause instanceof BrigError) throw cause;
    const errno = errnoOf(cause);
    if (errno === "ENOENT" || errno === "ENOTDIR") return { kind: "absent" };
    throw invalid(path, cause instanceof TypeError ? "is not UTF-8 text" : "cannot be read", cause);
  }
}

/** A file that is identified but not opened for reading. */
interface Pinned extends AsyncDisposable {
  stat: Stats;
  /** With /proc, this leads to the identified file even if its name changes. */
  path: string;
}

async function pin(path: string, { usesProc }: { usesProc: boolean }): Promise<Pinned> {
  if (!usesProc) return { stat: await lstat(path), path, [Symbol.asyncDispose]: async () => undefined };
  const handle = await open(path, O_PATH | constants.O_NOFOLLOW);
  try {
    const stat = await handle.stat();
    return { stat, path: `/proc/self/fd/${handle.fd}`, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function readPinned(node: Pinned, path: string): Promise<string> {
  const follows = node.path.startsWith("/proc/self/fd/") ? 0 : constants.O_NOFOLLOW;
  await using handle = await open(node.path, constants.O_RDONLY | constants.O_NONBLOCK | follows);
  const { dev, ino } = await handle.stat();
  if (dev !== node.stat.dev || ino !== node.stat.ino) throw invalid(path, "was replaced while it was opened");
  const bytes = await readStart(handle, WORKSPACE_FILE_MAX_BYTES + 1);
  if (bytes.length > WORKSPACE_FILE_MAX_BYTES)
    throw invalid(path, `is larger than ${WORKSPACE_FILE_MAX_BYTES} bytes`);
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

function refused(what: string): WorkspaceRead {
  return { kind: "refused", reason: `${what}, and brig does not follow anything out of a workspace` };
}

function invalid(file: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`${file} ${reason}`, { code: "config.invalid", hint: unreadHint, cause });
}

const unreadHint =
  'repair or remove it; files of a workspace with trust_level = "untrusted" under `projects` are not read';
