import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { errnoOf } from "./errno.js";
import { type HostProcesses, type Owner, ownerOf, ownerState, readHostProcesses } from "./owner.js";
import { pause } from "./time/pause.js";

/** One who takes locks, and how it tells whether another one still lives. */
export interface Claimant {
  owner: Owner;
  processes: HostProcesses;
}

/** A lock that is held until it is released. That may be done twice. */
export interface FileLock extends Disposable {
  release(): void;
}

export interface LockHolder {
  owner: Owner;
  /** The claim by which it holds the lock. */
  claim: string;
}

export type LockOutcome = { kind: "held"; lock: FileLock } | { kind: "busy"; holder: LockHolder };

export interface LockOptions {
  /** Default: this process. */
  claimant?: Claimant | undefined;
  /** How long to wait for another holder. Default 0: not at all. */
  patienceMs?: number | undefined;
  /** Only for holders whose life cannot be looked up: they count as dead after so long. Default: never. */
  presumedDeadAfterMs?: number | undefined;
  /** Called once when there is another holder to wait for. */
  onWait?: (() => void) | undefined;
  signal?: AbortSignal | undefined;
}

const POLL_MS = 50;
/** Of several that come at the same time the first waits this long for the others to withdraw. */
const RIVAL_WAIT_MS = 300;
const RIVAL_POLL_MS = 10;
/** From the first byte of a claim to its name takes no time: one that is this old was left by a process that was killed. */
const UNFINISHED_MS = 60_000;

const ownerShape: z.ZodType<Owner> = z.object({
  pid: z.int().positive(),
  startedAt: z.string().nullable(),
  bootId: z.string().nullable(),
  host: z.string(),
});

/** This process. */
export async function readClaimant(): Promise<Claimant> {
  const processes = await readHostProcesses(hostname());
  return { owner: await ownerOf(process.pid, processes), processes };
}

/**
 * Takes the lock of a file, which itself is not touched and need not exist. One at a time holds it, and a dead holder is no obstacle.
 *
 * A claim is a file beside it, in a name of its own that is never given again: so there is nothing to take over. A dead process's
 * claim can be removed by anybody at any time without ever hitting a living one's. Whoever has placed its claim and sees no other
 * living one holds the lock; each places before it looks, so of two at least one sees the other.
 */
export async function acquireLock(file: string, options: LockOptions = {}): Promise<LockOutcome> {
  const { patienceMs = 0, onWait, signal } = options;
  const seeker: Seeker = { ...options, file, claimant: options.claimant ?? (await readClaimant()) };
  const deadline = Date.now() + patienceMs;
  for (let isFirst = true; ; isFirst = false) {
    signal?.throwIfAborted();
    const [holder] = await livingClaims(seeker);
    const outcome: LockOutcome = holder === undefined ? await contend(seeker) : { kind: "busy", holder };
    if (outcome.kind === "held" || Date.now() >= deadline) return outcome;
    if (isFirst) onWait?.();
    await pause(POLL_MS, signal);
  }
}

/** Takes the lock of a file that no other process can know of yet. */
export function placeLock(file: string, { owner }: Claimant): FileLock {
  return placed(file, owner).lock;
}

/** The living process that holds the lock of a file, or null. */
export async function holderOf(file: string, processes: HostProcesses): Promise<Owner | null> {
  const [holder] = await livingClaims({ file, claimant: { processes } });
  return holder?.owner ?? null;
}

/** Whether a directory entry is somebody's claim, living or dead, to the lock of that file. */
export function isClaimOf(name: string, file: string): boolean {
  return isNamedAfter(file, name, ".lock");
}

interface Seeker extends Pick<LockOptions, "presumedDeadAfterMs" | "signal"> {
  file: string;
  claimant: Claimant;
}

/** The lower of two claims that come at the same time stays, the other withdraws. */
async function contend(seeker: Seeker): Promise<LockOutcome> {
  const { claim, lock } = placed(seeker.file, seeker.claimant.owner);
  try {
    for (let waitedMs = 0; ; waitedMs += RIVAL_POLL_MS) {
      const rivals = (await livingClaims(seeker)).filter((one) => one.claim !== claim);
      const [first] = rivals.toSorted((a, b) => (a.claim < b.claim ? -1 : 1));
      if (first === undefined) return { kind: "held", lock };
      if (first.claim < claim || waitedMs >= RIVAL_WAIT_MS) {
        lock.release();
        return { kind: "busy", holder: first };
      }
      await pause(RIVAL_POLL_MS, seeker.signal);
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The claim gets its name when it is whole. Others may read it: a user must see that root holds the lock. */
function placed(file: string, owner: Owner): { claim: string; lock: FileLock } {
  const claim = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString("hex")}.lock`);
  const unfinished = `${claim}.new`;
  try {
    writeFileSync(unfinished, JSON.stringify(owner), { mode: 0o644 });
    renameSync(unfinished, claim);
  } catch (cause) {
    rmSync(unfinished, { force: true });
    throw cause;
  }
  const release = () => rmSync(claim, { force: true });
  return { claim, lock: { release, [Symbol.dispose]: release } };
}

interface Lookout extends Pick<Seeker, "file" | "presumedDeadAfterMs"> {
  claimant: Pick<Claimant, "processes">;
}

async function livingClaims(lookout: Lookout): Promise<LockHolder[]> {
  const directory = dirname(lookout.file);
  const living: LockHolder[] = [];
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (isNamedAfter(lookout.file, name, ".lock.new") && isOlder(path, UNFINISHED_MS)) removeLeftover(path);
    if (!isClaimOf(name, lookout.file)) continue;
    const owner = readOwner(path);
    if (owner !== null && (await isLiving({ claim: path, owner }, lookout)))
      living.push({ claim: path, owner });
    else removeLeftover(path);
  }
  return living;
}

async function isLiving({ claim, owner }: LockHolder, lookout: Lookout): Promise<boolean> {
  const { claimant, presumedDeadAfterMs } = lookout;
  const state = await ownerState(owner, claimant.processes);
  if (state === "gone") return false;
  // Without a start time a living process may be a later one with the same id.
  const isCertain = state === "alive" && owner.startedAt !== null;
  return isCertain || presumedDeadAfterMs === undefined || !isOlder(claim, presumedDeadAfterMs);
}

/** Null for one that has been withdrawn, and for one that is not whole: a living process's always is. */
function readOwner(claim: string): Owner | null {
  try {
    return ownerShape.parse(JSON.parse(readFileSync(claim, "utf8")));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError || errnoOf(error) === "ENOENT")
      return null;
    throw error;
  }
}

/** False for one that is gone. */
function isOlder(path: string, ageMs: number): boolean {
  const facts = statSync(path, { throwIfNoEntry: false });
  return facts !== undefined && Date.now() - facts.mtimeMs > ageMs;
}

/** Where nothing can be removed it stays, and is as dead as before. */
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
