import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { createInterface } from "node:readline/promises";
import type { SessionFileEntry, SessionSummary } from "../../agent/index.js";
import { agentsOf, findSession, lockSessionFile, summariseAll } from "../../agent/index.js";
import { BrigError } from "../../errors.js";
import { type CurrentProcess, type FileLock, holderOf, readCurrentProcess } from "../../lib/file-lock.js";
import { readHostProcesses } from "../../lib/owner.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { CliContext } from "../context.js";
import { inFamilies, sessionRow } from "../display/session-rows.js";
import { say, writeTable } from "../render.js";
import { lastSession, noSession, refuseBoth, type SessionChoice } from "../sessions/chosen-session.js";

/** A session together with the sessions of its agents, which are of no use without it. */
interface Family {
  session: SessionFileEntry;
  agents: readonly SessionSummary[];
}

export interface DeleteFlags extends SessionChoice {
  yes?: boolean;
}

export async function deleteSessions(
  ids: readonly string[],
  { yes, last }: DeleteFlags,
  context: CliContext,
): Promise<void> {
  const { environment, stderr } = context;
  refuseBoth(ids.length > 0, { last });
  if (ids.length === 0 && last !== true) throw noSession();
  const chosen = last === true ? [(await lastSession(context)).id] : ids;
  const families = await familiesOf(chosen, environment.brigHome);
  const isAgreed = yes === true || (await confirms(families, context));
  if (!isAgreed) {
    await say(stderr, "nothing was deleted\n");
    return context.setExitStatus(1);
  }
  const currentProcess = await readCurrentProcess();
  for (const family of families) {
    await deleteFamily(family, currentProcess);
    await say(stderr, `deleted ${family.session.id}\n`);
    for (const { id, nickname } of family.agents)
      await say(stderr, `deleted ${id}, the session of its agent ${neutraliseLine(nickname ?? "")}\n`);
  }
}

/** Deletes a session and those of its agents. Errors: `session.busy`; `session.invalid` if a file cannot be removed. */
export async function deleteWithAgents(session: SessionFileEntry, home: string): Promise<void> {
  const agents = await agentsOf(session.id, home);
  await deleteFamily({ session, agents }, await readCurrentProcess());
}

async function familiesOf(ids: readonly string[], home: string): Promise<Family[]> {
  const families: Family[] = [];
  const taken = new Set<string>();
  for (const id of ids) {
    const session = await findSession(home, id);
    if (taken.has(session.path)) continue;
    const agents = (await agentsOf(session.id, home)).filter(({ path }) => !taken.has(path));
    for (const { path } of [session, ...agents]) taken.add(path);
    families.push({ session, agents });
  }
  return families;
}

/** The session comes first: if it is in use, nothing is deleted. */
async function deleteFamily({ session, agents }: Family, currentProcess: CurrentProcess): Promise<void> {
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

async function confirms(families: readonly Family[], context: CliContext): Promise<boolean> {
  const { stdin, stderr, signal } = context;
  if (stdin.isTTY !== true || stderr.isTTY !== true)
    throw new BrigError("deleting sessions needs a confirmation, and there is no terminal to ask at", {
      code: "usage.invalid",
      hint: "add --yes to delete them without being asked",
    });
  const files = families.flatMap(({ session, agents }) => [session, ...agents]);
  const summaries = await summariseAll(files, await readHostProcesses(hostname()));
  await writeTable(stderr, inFamilies(summaries).map(sessionRow));
  const asking = createInterface({ input: stdin, output: stderr });
  try {
    const question = files.length === 1 ? "Delete it? [y/N] " : `Delete these ${files.length}? [y/N] `;
    return /^y(es)?$/i.test((await asking.question(question, { signal })).trim());
  } finally {
    asking.close();
  }
}
