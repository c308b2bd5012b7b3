import { rmSync } from "node:fs";
import { BrigError } from "../../../errors.js";
import { type CurrentProcess, type FileLock, holderOf, readCurrentProcess } from "../../../lib/file-lock.js";
import type { SessionFileEntry, SessionSummary } from "../read/session-index.js";
import { agentsOf } from "../read/session-index.js";
import { lockSessionFile } from "./session-file.js";

/** A session together with the sessions of its agents, which are of no use without it. */
export interface SessionFamily {
  session: SessionFileEntry;
  agents: readonly SessionSummary[];
}

/** Deletes a session and those of its agents. Errors: `session.busy`; `session.invalid` if a file cannot be removed. */
export async function deleteWithAgents(session: SessionFileEntry, home: string): Promise<void> {
  const agents = await agentsOf(session.id, home);
  await deleteFamily({ session, agents }, await readCurrentProcess());
}

/** The session comes first: if it is in use, nothing is deleted. */
export async function deleteFamily(
  { session, agents }: SessionFamily,
  currentProcess: CurrentProcess,
): Promise<void> {
  for (const { path } of [session, ...agents]) await deleteSession(path, currentProcess);
}

async function deleteSession(path: string, currentProcess: CurrentProcess): Promise<void> {
  const claim = await claimToDelete(path, currentProcess);
  try {
    rmSync(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BrigError(`the session file cannot be deleted: ${reason}`, { code: "session.invalid", cause });
  } finally {
    claim?.release();
  }
}

/** A full disk has no room for a lock file, so a session that nobody has locked is deleted without one. */
async function claimToDelete(path: string, currentProcess: CurrentProcess): Promise<FileLock | null> {
  try {
    return await lockSessionFile(path, currentProcess);
  } catch (error) {
    if (error instanceof BrigError || (await holderOf(path, currentProcess.processes)) !== null) throw error;
    return null;
  }
}
