import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../errors.js";
import { readStart } from "../../lib/bounded-file.js";
import { errnoOf } from "../../lib/errno.js";
import { acquireLock, type FileLock, type LockHolder } from "../../lib/file-lock.js";
import { parseJson } from "../../lib/parse-json.js";

/** Far more than a login takes. */
const maxBytes = 1024 * 1024;
/** Longer than anybody works on a login. */
const presumedDeadAfterMs = 2 * 60 * 1000;
/** What can stand in a header of a request without changing its meaning. */
const headerValue = z
  .string()
  .max(100_000)
  .regex(/^[\x21-\x7e]+$/, "must be one line of printable ASCII characters");

export const tokensSchema = z.looseObject({
  id_token: headerValue,
  access_token: headerValue,
  refresh_token: headerValue,
  account_id: headerValue.nullish(),
  expires_at: z.iso.datetime().nullish().describe("Until when the access token holds. A key of brig's own"),
});

/** `auth.json` as Codex has it. Keys that brig does not know stay as they are. */
const authFileSchema = z.looseObject({
  auth_mode: z.string().nullish().describe("apikey or chatgpt. Default: apikey where there is a key"),
  OPENAI_API_KEY: headerValue.nullish(),
  tokens: tokensSchema.nullish(),
  last_refresh: z.iso.datetime({ offset: true }).nullish(),
});

export type StoredTokens = z.infer<typeof tokensSchema>;
export type AuthFile = z.infer<typeof authFileSchema>;

export interface WaitOptions {
  signal?: AbortSignal | undefined;
  /** How long to wait for other processes that change the login. Default one minute. */
  patienceMs?: number | undefined;
}

export function authFilePath(home: string): string {
  return join(home, "auth.json");
}

/**
 * Reads `auth.json` of brig's home; null where there is none. A file that others can read is closed to them first. One
 * that is no regular file, not valid or not ours to close is `model.auth`.
 */
export async function readAuthFile(home: string): Promise<AuthFile | null> {
  const file = authFilePath(home);
  const handle = await openForReading(file);
  if (handle === null) return null;
  try {
    await requireClosedFile(handle, file);
    return parseAuthFile(await readBounded(handle, file), file);
  } finally {
    await handle.close();
  }
}

/**
 * Changes `auth.json`, one process at a time. `change` may read what is stored by now and returns what shall be; undefined
 * leaves it as it is. What it throws is passed on.
 */
export async function changeAuthFile(
  home: string,
  change: (read: () => Promise<AuthFile | null>) => Promise<AuthFile | undefined>,
  options: WaitOptions = {},
): Promise<void> {
  await requireClosedHome(home);
  using _lock = await lockAuthFile(home, options);
  const next = await change(() => readAuthFile(home));
  if (next === undefined) return;
  await removeLeftovers(home);
  await replaceAuthFile(home, next);
}

/** Removes `auth.json` whatever is in it, readable or not. False where there was none. */
export async function removeAuthFile(home: string, options: WaitOptions = {}): Promise<boolean> {
  if (!(await isDirectory(home))) return false;
  using _lock = await lockAuthFile(home, options);
  await removeLeftovers(home);
  try {
    await rm(authFilePath(home));
    return true;
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return false;
    throw unusable(`${authFilePath(home)} cannot be removed`, { cause });
  }
}

/** One at a time changes the login. A lock that is not free in time is `model.auth`. */
async function lockAuthFile(home: string, options: WaitOptions): Promise<FileLock> {
  const { signal, patienceMs = 60_000 } = options;
  const file = authFilePath(home);
  try {
    const outcome = await acquireLock(file, { signal, patienceMs, presumedDeadAfterMs });
    if (outcome.kind === "held") return outcome.lock;
    throw stillLocked(outcome.holder);
  } catch (cause) {
    if (cause instanceof BrigError || signal?.aborted === true) throw cause;
    throw unusable(`${file} cannot be locked`, {
      hint: "a login is renewed in the directory it is kept in, which must be writable",
      cause,
    });
  }
}

function stillLocked({ owner, claim }: LockHolder): BrigError {
  return unusable(`process ${owner.pid} keeps the login locked`, {
    hint: `if no brig is at work there, remove ${claim}`,
  });
}

/** A link is not followed: what it points to may be anybody's. A FIFO must not keep us waiting. */
async function openForReading(file: string): Promise<FileHandle | null> {
  try {
    return await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT" || errnoOf(cause) === "ENOTDIR") return null;
    if (errnoOf(cause) === "ELOOP")
      throw unusable(`${file} is a symbolic link`, {
        hint: "put the file itself there, or log in again: brig login",
      });
    throw unusable(`${file} cannot be read`, { cause });
  }
}

async function requireClosedFile(handle: FileHandle, file: string): Promise<void> {
  const status = await handle.stat();
  if (!status.isFile())
    throw unusable(`${file} is not a regular file`, { hint: "remove it and log in again" });
  if ((status.mode & 0o077) === 0) return;
  try {
    await handle.chmod(0o600);
  } catch (cause) {
    throw unusable(`others can read ${file}, and it cannot be closed to them`, {
      cause,
      hint: `chmod 600 ${file}`,
    });
  }
}

async function readBounded(handle: FileHandle, file: string): Promise<string> {
  const bytes = await readStart(handle, maxBytes + 1);
  if (bytes.length <= maxBytes) return bytes.toString("utf8");
  throw unusable(`${file} is larger than a login can be`, { hint: "remove it and log in again" });
}

/** The complaint names keys and types, never a value. */
function parseAuthFile(text: string, file: string): AuthFile {
  const hint = "log in again: brig login";
  const source = parseJson(text);
  if (source === undefined) throw unusable(`${file} is not JSON`, { hint });
  const parsed = authFileSchema.safeParse(source);
  if (parsed.success) return parsed.data;
  throw unusable(`${file} is not a valid login:\n${z.prettifyError(parsed.error)}`, { hint });
}

/** Makes brig's home, closed to others, or takes from others the right to replace files in an existing one. */
async function requireClosedHome(home: string): Promise<void> {
  try {
    await mkdir(home, { recursive: true, mode: 0o700 });
    await using directory = await openDirectory(home);
    const { mode } = await directory.stat();
    if ((mode & 0o022) !== 0) await directory.chmod(mode & 0o7755);
  } catch (cause) {
    throw unusable(`${home} cannot keep a login`, {
      cause,
      hint: "it must be a directory of yours that others cannot write to; BRIG_HOME names another one",
    });
  }
}

async function openDirectory(path: string): Promise<FileHandle> {
  return await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
}

/** The new content is on the disk before it gets the name: a reader sees the old file or the new one, whole. */
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
    throw unusable(`${file} cannot be written`, { cause, hint: "the login was not saved" });
  }
}

async function writeDraft(draft: string, text: string): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  await using handle = await open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  await handle.writeFile(text);
  await handle.sync();
}

/** Drafts of processes that were killed. Whoever holds the lock is the only writer. */
async function removeLeftovers(home: string): Promise<void> {
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

function unusable(message: string, { hint, cause }: { hint?: string; cause?: unknown }): BrigError {
  return new BrigError(message, { code: "model.auth", hint, cause });
}
