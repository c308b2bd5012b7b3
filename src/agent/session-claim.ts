import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { BrigError } from "../errors.js";
import { type HostProcesses, type Owner, ownerOf, ownerState, readHostProcesses } from "../lib/owner.js";
import { pause } from "../lib/pause.js";

/** One who writes session files, and how it tells whether another one still lives. */
export interface Claimant {
  owner: Owner;
  processes: HostProcesses;
}

/** The right to write a session file. */
export interface SessionClaim {
  release(): void;
}

/** Who is there first waits this long for others to withdraw. */
const RIVAL_WAIT_MS = 300;
const RIVAL_POLL_MS = 10;

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
 * Claims a file that no other process can know of yet. A claim is a file beside the session's, in a name of its own: so a dead
 * process's claim can be removed by anybody at any time without ever hitting a living one's.
 */
export function placeClaim(file: string, { owner }: Claimant): SessionClaim {
  const claim = placed(file, owner);
  return { release: claim.withdraw };
}

/** Claims a file that others may know of. One that another process writes is `session.busy`, which names that process. */
export async function claimSession(file: string, { owner, processes }: Claimant): Promise<SessionClaim> {
  const mine = placed(file, owner);
  try {
    await prevail(file, mine.name, processes);
    return { release: mine.withdraw };
  } catch (error) {
    mine.withdraw();
    throw error;
  }
}

/** The living process that writes a file, or null. */
export async function holderOf(file: string, processes: HostProcesses): Promise<Owner | null> {
  const [holder] = await livingClaims(file, processes);
  return holder?.owner ?? null;
}

/** Whether a directory entry is a claim of that session file. */
export function isClaimOf(name: string, file: string): boolean {
  return name.startsWith(`.${basename(file)}.`) && name.endsWith(".lock");
}

interface PlacedClaim {
  /** Decides between two that come at the same time: the lower one stays. */
  name: string;
  withdraw(): void;
}

function placed(file: string, owner: Owner): PlacedClaim {
  const name = `.${basename(file)}.${randomBytes(6).toString("hex")}.lock`;
  const path = join(dirname(file), name);
  const unfinished = `${path}.new`;
  try {
    writeFileSync(unfinished, JSON.stringify(owner), { mode: 0o600 });
    renameSync(unfinished, path);
  } catch (cause) {
    rmSync(unfinished, { force: true });
    throw cause;
  }
  return {
    name,
    withdraw() {
      rmSync(path, { force: true });
    },
  };
}

/** Each places its claim before it looks for others, so of two at least one sees the other. */
async function prevail(file: string, mine: string, processes: HostProcesses): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += RIVAL_POLL_MS) {
    const rivals = (await livingClaims(file, processes)).filter(({ name }) => name !== mine);
    const [first] = rivals;
    if (first === undefined) return;
    const isOutranked = rivals.some(({ name }) => name < mine);
    if (isOutranked || waitedMs >= RIVAL_WAIT_MS) throw busy(file, first, processes);
    await pause(RIVAL_POLL_MS);
  }
}

interface LivingClaim {
  name: string;
  owner: Owner;
}

async function livingClaims(file: string, processes: HostProcesses): Promise<LivingClaim[]> {
  const directory = dirname(file);
  const claims: LivingClaim[] = [];
  for (const name of readdirSync(directory).filter((entry) => isClaimOf(entry, file))) {
    const owner = readOwner(join(directory, name));
    if (owner !== null && (await ownerState(owner, processes)) !== "gone") claims.push({ name, owner });
    else rmSync(join(directory, name), { force: true });
  }
  return claims;
}

/** Null for one that has been withdrawn, and for one that is not whole: a living process's always is. */
function readOwner(path: string): Owner | null {
  try {
    return ownerShape.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return null;
  }
}

function busy(file: string, { name, owner }: LivingClaim, { host }: HostProcesses): BrigError {
  const isHere = owner.host === host;
  return new BrigError(
    `the session ${basename(file)} is in use by process ${owner.pid}${isHere ? "" : ` on ${owner.host}`}`,
    {
      code: "session.busy",
      hint: isHere
        ? "wait for it to end, or go on in a copy: brig sessions fork"
        : `if that process is no more, remove ${join(dirname(file), name)}; or go on in a copy: brig sessions fork`,
    },
  );
}
