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
  /** There is something that is no plain file in a plain directory. */
  | { kind: "refused"; reason: string };

/** Reads a configuration file of the workspace, given its absolute path. What it holds is hostile. */
export type WorkspaceReader = (path: string) => Promise<WorkspaceRead>;

/** Names a file without opening it: no device is started, no FIFO waits, no link is followed. Linux only; Node has no name for it. */
const O_PATH = 0o10_000_000;

/**
 * Reads `DIR/config.toml` of a workspace from this process. The sandbox cannot be asked: it starts in the mode that these files may
 * tighten. An agent of an earlier session, or one at work right now, may have put anything there, so nothing is opened before it is
 * known to be a regular file in a real directory, and what was looked at is what is read: descriptors hold both, and the file is opened
 * through its own. Where there is no /proc the same is checked by name, which leaves an agent at work a moment to exchange them; all
 * it could gain is that another file of this person's tightens. A link, a FIFO, a device is `refused`; a file that is too large, not
 * UTF-8 or not readable is `config.invalid`, since somebody may have meant to tighten.
 */
export async function readWorkspaceFile(
  path: string,
  options: { usesProc?: boolean | undefined } = {},
): Promise<WorkspaceRead> {
  const directory = dirname(path);
  try {
    const usesProc = options.usesProc ?? (await isThere("/proc/self/fd"));
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

/** A file that was looked at and not opened. */
interface Pinned extends AsyncDisposable {
  stat: Stats;
  /** Leads to this very file, where there is /proc. */
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
  if (dev !== node.stat.dev || ino !== node.stat.ino)
    throw invalid(path, "was exchanged while it was opened");
  const bytes = await readStart(handle, WORKSPACE_FILE_MAX_BYTES + 1);
  if (bytes.length > WORKSPACE_FILE_MAX_BYTES)
    throw invalid(path, `is larger than ${WORKSPACE_FILE_MAX_BYTES} bytes`);
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

function refused(what: string): WorkspaceRead {
  return { kind: "refused", reason: `${what}, and brig follows nothing that leads out of a workspace` };
}

function invalid(file: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`${file} ${reason}`, { code: "config.invalid", hint: unreadHint, cause });
}

const unreadHint =
  'mend or remove it; a workspace with trust_level = "untrusted" under `projects` is left unread';
