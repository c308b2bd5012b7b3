import { hostname } from "node:os";
import { createInterface } from "node:readline/promises";
import type { SessionFamily } from "../../agent/index.js";
import { agentsOf, deleteFamily, findSession, summariseAll } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, writeTable } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { readCurrentProcess } from "../../lib/file-lock.js";
import { readHostProcesses } from "../../lib/owner.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { inFamilies, sessionRow } from "../display/session-rows.js";
import { lastSession, noSession, refuseBoth, type SessionChoice } from "../sessions/chosen-session.js";

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

async function familiesOf(ids: readonly string[], home: string): Promise<SessionFamily[]> {
  const families: SessionFamily[] = [];
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

async function confirms(families: readonly SessionFamily[], context: CliContext): Promise<boolean> {
  const { stdin, essentialStderr: stderr, signal } = context;
  if (stdin.isTTY !== true || stderr.isTTY !== true)
    throw invalidUsage(
      "deleting sessions needs a confirmation, and there is no terminal to ask at",
      "add --yes to delete them without being asked",
    );
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
