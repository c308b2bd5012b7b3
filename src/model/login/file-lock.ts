import { randomUUID } from "node:crypto";
import { link, readFile, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { z } from "zod";
import { BrigError } from "../../errors.js";
import { ownerOf, ownerState, readHostProcesses } from "../../lib/owner.js";
import { pause } from "../../lib/pause.js";

const pollMs = 50;
/** Longer than any holder works. Only for holders whose life cannot be looked up. */
const oldestMs = 2 * 60 * 1000;

const text = z.string().nullable();
const holderSchema = z.object({
  token: z.string(),
  owner: z.object({ pid: z.int().positive(), startedAt: text, bootId: text, host: z.string() }),
});
type Holder = z.infer<typeof holderSchema>;

export interface FileLockOptions {
  signal?: AbortSignal | undefined;
  /** How long to wait for other processes. Default one minute. */
  patienceMs?: number;
}

/**
 * Takes a lock that is the existence of `file`, and gives it back when disposed of. A lock whose holder has died is taken over. One
 * that is not free in time is `model.auth`.
 */
export async function acquireFileLock(file: string, options: FileLockOptions = {}): Promise<AsyncDisposable> {
  const { signal, patienceMs = 60_000 } = options;
  const holder: Holder = await newHolder();
  const deadline = Date.now() + patienceMs;
  signal?.throwIfAborted();
  while (!(await tryAcquire(file, holder))) {
    signal?.throwIfAborted();
    if (await isAbandoned(file)) await removeAbandoned(file, { signal, patienceMs: deadline - Date.now() });
    else if (Date.now() > deadline) throw stillHeld(file, await readHolder(file));
    else await pause(pollMs, signal);
  }
  return { [Symbol.asyncDispose]: () => release(file, holder) };
}

async function newHolder(): Promise<Holder> {
  return { token: randomUUID(), owner: await ownerOf(process.pid, await readHostProcesses(hostname())) };
}

/** The lock appears with its holder already in it, since it is linked from a finished file. */
async function tryAcquire(file: string, holder: Holder): Promise<boolean> {
  const own = `${file}.${holder.token}`;
  try {
    await writeFile(own, JSON.stringify(holder), { flag: "wx", mode: 0o600 });
    await link(own, file);
    return true;
  } catch (cause) {
    if (errnoOf(cause) === "EEXIST") return false;
    throw new BrigError(`${file} cannot be made`, {
      code: "model.auth",
      hint: "a login is renewed in the directory it is kept in, which must be writable",
      cause,
    });
  } finally {
    await rm(own, { force: true });
  }
}

/** After a takeover the lock is another's. */
async function release(file: string, { token }: Holder): Promise<void> {
  if ((await readHolder(file))?.token === token) await rm(file, { force: true });
}

async function isAbandoned(file: string): Promise<boolean> {
  const owner = (await readHolder(file))?.owner;
  const state =
    owner === undefined ? "elsewhere" : await ownerState(owner, await readHostProcesses(hostname()));
  if (state === "gone") return true;
  // Without a start time a living process may be a later one with the same id.
  return state === "alive" && owner?.startedAt != null ? false : await isOld(file);
}

/**
 * Two that find the same dead holder must not both remove the lock: the second would remove the first one's new lock. So removing
 * is under a lock of its own, and the holder is looked at again there.
 */
async function removeAbandoned(file: string, options: FileLockOptions): Promise<void> {
  await using _removal = await acquireFileLock(`${file}.removal`, options);
  if (await isAbandoned(file)) await rm(file, { force: true });
}

/** Null for one that is gone, or that a power failure left empty. */
async function readHolder(file: string): Promise<Holder | null> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError || errnoOf(error) === "ENOENT")
      return null;
    throw error;
  }
}

/** False for a lock that is gone: it is free, not abandoned. */
async function isOld(file: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(file)).mtimeMs > oldestMs;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}

function stillHeld(file: string, holder: Holder | null): BrigError {
  const who = holder === null ? "another process" : `process ${holder.owner.pid}`;
  return new BrigError(`${who} keeps the login locked`, {
    code: "model.auth",
    hint: `if no brig is at work there, remove ${file}`,
  });
}

function errnoOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
