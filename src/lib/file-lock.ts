import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { errnoOf } from "./errno.js";
import { read, ShapeError } from "./json/json-shape.js";
import {
  type HostProcesses,
  type Owner,
  ownerOf,
  ownerShape,
  ownerState,
  readHostProcesses,
} from "./owner.js";
import { pause } from "./time/pause.js";

/** A process that takes locks, and how it finds out which others are alive. */
export interface CurrentProcess {
  owner: Owner;
  processes: HostProcesses;
}

/** Releasing it twice does no harm. */
export interface FileLock extends Disposable {
  release(): void;
}

export interface LockHolder {
  owner: Owner;
  lockFile: string;
}

export type LockOutcome = { kind: "held"; lock: FileLock } | { kind: "busy"; holder: LockHolder };

export interface LockOptions {
  /** Default: this process. */
  currentProcess?: CurrentProcess | undefined;
  /** The time to wait for the holder to release it. Default: 0. */
  waitMs?: number | undefined;
  /** Holders of unknown state, e.g. on other machines, count as dead after this time. Default: never. */
  presumedDeadAfterMs?: number | undefined;
  /** Called once if the lock is held by another process. */
  onWait?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
}

const POLL_MS = 50;
/** If several processes compete, how long the winner waits for the others to withdraw. */
const RIVAL_WAIT_MS = 300;
const RIVAL_POLL_MS = 10;
/** Writing a lock file takes no time: an unfinished one this old was left by a killed process. */
const UNFINISHED_MS = 60_000;

export async function readCurrentProcess(): Promise<CurrentProcess> {
  const processes = await readHostProcesses(hostname());
  return { owner: await ownerOf(process.pid, processes), processes };
}

/**
 * Takes the lock of a file, which need not exist. One living process at a time holds it.
 *
 * Each process creates its own lock file next to the file, under a random name that is never reused. So
 * nobody takes over a lock file, and the removal of a dead process's lock file can never hit another one. A
 * process holds the lock if its lock file exists and it sees none of another living process. Each creates its
 * file before it looks, so of two processes at least one sees the other.
 */
export async function acquireLock(file: string, options: LockOptions = {}): Promise<LockOutcome> {
  const { waitMs = 0, onWait, signal } = options;
  const request: LockRequest = {
    ...options,
    file,
    currentProcess: options.currentProcess ?? (await readCurrentProcess()),
  };
  const deadline = Date.now() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    signal?.throwIfAborted();
    const [holder] = await livingHolders(request);
    const outcome: LockOutcome = holder === undefined ? await compete(request) : { kind: "busy", holder };
    if (outcome.kind === "held" || Date.now() >= deadline) return outcome;
    if (isFirst) onWait?.();
    await pause(POLL_MS, signal);
  }
}

/** Takes the lock of a file that no other process can know yet. */
export function createLock(file: string, { owner }: CurrentProcess): FileLock {
  return writeLockFile(file, owner).lock;
}

/** The living process that holds the lock, or null. */
export async function holderOf(file: string, processes: HostProcesses): Promise<Owner | null> {
  const [holder] = await livingHolders({ file, currentProcess: { processes } });
  return holder?.owner ?? null;
}

/** Whether a directory entry is a lock file for `file`, of a living or a dead process. */
export function isLockFileOf(name: string, file: string): boolean {
  return isNamedAfter(file, name, ".lock");
}

interface LockRequest extends Pick<LockOptions, "presumedDeadAfterMs" | "signal"> {
  file: string;
  currentProcess: CurrentProcess;
}

/** If two processes compete, the one whose lock file comes first by name wins, and the other withdraws. */
async function compete(request: LockRequest): Promise<LockOutcome> {
  const { lockFile, lock } = writeLockFile(request.file, request.currentProcess.owner);
  try {
    for (let waitedMs = 0; ; waitedMs += RIVAL_POLL_MS) {
      const rivals = (await livingHolders(request)).filter((one) => one.lockFile !== lockFile);
      const [first] = rivals.toSorted((a, b) => (a.lockFile < b.lockFile ? -1 : 1));
      if (first === undefined) return { kind: "held", lock };
      if (first.lockFile < lockFile || waitedMs >= RIVAL_WAIT_MS) {
        lock.release();
        return { kind: "busy", holder: first };
      }
      await pause(RIVAL_POLL_MS, request.signal);
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Renamed into place when complete. Others may read it: a user must see that root holds the lock. */
function writeLockFile(file: string, owner: Owner): { lockFile: string; lock: FileLock } {
  const lockFile = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString("hex")}.lock`);
  const unfinished = `${lockFile}.new`;
  try {
    writeFileSync(unfinished, JSON.stringify(owner), { mode: 0o644 });
    renameSync(unfinished, lockFile);
  } catch (cause) {
    rmSync(unfinished, { force: true });
    throw cause;
  }
  const release = () => rmSync(lockFile, { force: true });
  return { lockFile, lock: { release, [Symbol.dispose]: release } };
}

interface HolderSearch extends Pick<LockRequest, "file" | "presumedDeadAfterMs"> {
  currentProcess: Pick<CurrentProcess, "processes">;
}

async function livingHolders(search: HolderSearch): Promise<LockHolder[]> {
  const directory = dirname(search.file);
  const living: LockHolder[] = [];
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (isNamedAfter(search.file, name, ".lock.new") && isOlder(path, UNFINISHED_MS)) removeLeftover(path);
    if (!isLockFileOf(name, search.file)) continue;
    const owner = readOwner(path);
    if (owner !== null && (await isLiving({ lockFile: path, owner }, search)))
      living.push({ lockFile: path, owner });
    else removeLeftover(path);
  }
  return living;
}

async function isLiving({ lockFile, owner }: LockHolder, search: HolderSearch): Promise<boolean> {
  const { currentProcess, presumedDeadAfterMs } = search;
  const state = await ownerState(owner, currentProcess.processes);
  if (state === "gone") return false;
  // If there is no start time, the living process may be another one that reuses the id.
  const isCertain = state === "alive" && owner.startedAt !== null;
  return isCertain || presumedDeadAfterMs === undefined || !isOlder(lockFile, presumedDeadAfterMs);
}

/** Null if it was removed, or is incomplete: a living process's lock file is always complete. */
function readOwner(lockFile: string): Owner | null {
  try {
    return read(ownerShape, JSON.parse(readFileSync(lockFile, "utf8")));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof ShapeError || errnoOf(error) === "ENOENT")
      return null;
    throw error;
  }
}

function isOlder(path: string, ageMs: number): boolean {
  const facts = statSync(path, { throwIfNoEntry: false });
  return facts !== undefined && Date.now() - facts.mtimeMs > ageMs;
}

/** A lock file that cannot be removed stays, and does not count anyway. */
function removeLeftover(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
  }
}

function isNamedAfter(file: string, name: string, ending: string): boolean {
  const start = `.${basename(file)}.`;
  const token = name.slice(start.length, name.length - ending.length);
  return name.startsWith(start) && name.endsWith(ending) && /^[0-9a-f]{12}$/.test(token);
}
