import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { readStart } from "../../../lib/bounded-file.js";
import { errnoOf } from "../../../lib/errno.js";
import { acquireLock, type FileLock } from "../../../lib/file-lock.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { parseJson } from "../../../lib/json/parse-json.js";

const maxBytes = 1024 * 1024;
const presumedDeadAfterMs = 2 * 60 * 1000;
/** These values go into headers of requests: a line break would begin another header. */
const headerValue = z
  .string()
  .max(100_000)
  .regex(/^[\x21-\x7e]+$/, "must be one line of printable ASCII characters");

export const tokensSchema = z.looseObject({
  id_token: headerValue,
  access_token: headerValue,
  refresh_token: headerValue,
  account_id: headerValue.nullish(),
  expires_at: z.iso.datetime().nullish().describe("When the access token expires. A key of brig's own"),
});

/** `auth.json` in Codex's format. Keys that brig does not know are kept. */
const authFileSchema = z.looseObject({
  auth_mode: z.string().nullish().describe("apikey or chatgpt. Default: apikey if there is a key"),
  OPENAI_API_KEY: headerValue.nullish(),
  tokens: tokensSchema.nullish(),
  last_refresh: z.iso.datetime({ offset: true }).nullish(),
});

export type StoredTokens = z.infer<typeof tokensSchema>;
export type AuthFile = z.infer<typeof authFileSchema>;

export interface WaitOptions {
  signal?: AbortSignal | undefined;
  /** How long to wait for other processes that change the login. Default: one minute. */
  waitMs?: number | undefined;
}

export function authFilePath(home: string): string {
  return join(home, "auth.json");
}

/**
 * Reads `auth.json` of brig's home; null if there is none. If other users can read the file, their access is
 * removed first. Error: `model.auth` if it is not a regular file, is not valid, or its mode cannot be
 * changed.
 */
export async function readAuthFile(home: string): Promise<AuthFile | null> {
  const file = authFilePath(home);
  const handle = await openForReading(file);
  if (handle === null) return null;
  try {
    await requirePrivateFile(handle, file);
    return parseAuthFile(await readBounded(handle, file), file);
  } finally {
    await handle.close();
  }
}

/**
 * Changes `auth.json`, one process at a time. `change` may read the current content and returns the new one,
 * or undefined to leave the file as it is. Its errors are passed on.
 */
export async function changeAuthFile(
  home: string,
  change: (read: () => Promise<AuthFile | null>) => Promise<AuthFile | undefined>,
  options: WaitOptions = {},
): Promise<void> {
  await requirePrivateHome(home);
  using _lock = await lockAuthFile(home, options);
  const next = await change(() => readAuthFile(home));
  if (next === undefined) return;
  await removeStaleDrafts(home);
  await replaceAuthFile(home, next);
}

/** Removes `auth.json`, even an invalid or unreadable one. False if there was none. */
export async function removeAuthFile(home: string, options: WaitOptions = {}): Promise<boolean> {
  if (!(await isDirectory(home))) return false;
  using _lock = await lockAuthFile(home, options);
  await removeStaleDrafts(home);
  try {
    await rm(authFilePath(home));
    return true;
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return false;
    throw authFileError(`${authFilePath(home)} cannot be removed`, { cause });
  }
}

async function lockAuthFile(home: string, options: WaitOptions): Promise<FileLock> {
  const { signal, waitMs = 60_000 } = options;
  const file = authFilePath(home);
  try {
    const outcome = await acquireLock(file, { signal, waitMs, presumedDeadAfterMs });
    if (outcome.kind === "held") return outcome.lock;
    const { owner, lockFile } = outcome.holder;
    const hint = `if that process is not brig, remove ${lockFile}`;
    throw authFileError(`process ${owner.pid} holds the lock of the login`, { hint });
  } catch (cause) {
    if (cause instanceof BrigError || signal?.aborted === true) throw cause;
    throw authFileError(`${file} cannot be locked`, {
      hint: "brig must be able to write to the directory of auth.json to renew a login",
      cause,
    });
  }
}

/** A symbolic link may lead to another user's file, so it is refused. Opening a FIFO must not block. */
async function openForReading(file: string): Promise<FileHandle | null> {
  try {
    return await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT" || errnoOf(cause) === "ENOTDIR") return null;
    if (errnoOf(cause) === "ELOOP")
      throw authFileError(`${file} is a symbolic link`, {
        hint: "put the file itself there, or log in again: brig login",
      });
    throw authFileError(`${file} cannot be read`, { cause });
  }
}

async function requirePrivateFile(handle: FileHandle, file: string): Promise<void> {
  const status = await handle.stat();
  if (!status.isFile())
    throw authFileError(`${file} is not a regular file`, { hint: "remove it and log in again" });
  if ((status.mode & 0o077) === 0) return;
  try {
    await handle.chmod(0o600);
  } catch (cause) {
    throw authFileError(`other users can read ${file}, and brig cannot change its mode`, {
      cause,
      hint: `run: chmod 600 ${file}`,
    });
  }
}

async function readBounded(handle: FileHandle, file: string): Promise<string> {
  const bytes = await readStart(handle, maxBytes + 1);
  if (bytes.length <= maxBytes) return bytes.toString("utf8");
  throw authFileError(`${file} is too large for a login`, { hint: "remove it and log in again" });
}

/** The error names keys and types, never a value. */
function parseAuthFile(text: string, file: string): AuthFile {
  const hint = "log in again: brig login";
  const source = parseJson(text);
  if (source === undefined) throw authFileError(`${file} is not JSON`, { hint });
  const parsed = authFileSchema.safeParse(source);
  if (parsed.success) return parsed.data;
  throw authFileError(`${file} is not a valid login:\n${z.prettifyError(parsed.error)}`, { hint });
}

/** Creates brig's home as a private directory, or removes other users' write access to an existing one. */
async function requirePrivateHome(home: string): Promise<void> {
  try {
    await makeDirectory(home, { mode: 0o700 });
    await using directory = await openDirectory(home);
    const { mode } = await directory.stat();
    if ((mode & 0o022) !== 0) await directory.chmod(mode & 0o7755);
  } catch (cause) {
    throw authFileError(`${home} cannot hold a login`, {
      cause,
      hint: "it must be your own directory, writable by nobody else; BRIG_HOME sets another one",
    });
  }
}

async function openDirectory(path: string): Promise<FileHandle> {
  return await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
}

/** Writes and syncs a draft first, so that a reader sees the whole old file or the whole new one. */
async function replaceAuthFile(home: string, content: AuthFile): Promise<void> {
  const file = authFilePath(home);
  const draft = `${file}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    await writeDraft(draft, `${JSON.stringify(content, null, 2)}\n`);
    await rename(draft, file);
    await using directory = await openDirectory(dirname(file));
    await directory.sync();
  } catch (cause) {
    await rm(draft, { force: true });
    throw authFileError(`${file} cannot be written`, { cause, hint: "the login was not saved" });
  }
}

async function writeDraft(draft: string, text: string): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  await using handle = await open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  await handle.writeFile(text);
  await handle.sync();
}

/** Drafts that killed processes left: the caller has the lock, so no draft is in use. */
async function removeStaleDrafts(home: string): Promise<void> {
  for (const name of await readdir(home))
    if (/^auth\.json\.[0-9a-f]{16}\.tmp$/.test(name)) await rm(join(home, name), { force: true });
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

function authFileError(message: string, { hint, cause }: { hint?: string; cause?: unknown }): BrigError {
  return new BrigError(message, { code: "model.auth", hint, cause });
}
