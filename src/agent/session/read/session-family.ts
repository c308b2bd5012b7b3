import { hostname } from "node:os";
import { readHostProcesses } from "../../../lib/owner.js";
import { findSessionFiles, type SessionSummary, summariseAll } from "./session-index.js";

/** The sessions of the agents that a session has started, and of those that they have started, at any depth. */
export async function agentsOf(sessionId: string, home: string): Promise<SessionSummary[]> {
  const all = await summariseAll(await findSessionFiles(home), await readHostProcesses(hostname()));
  const found = new Map<string, SessionSummary>();
  for (let parents = new Set([sessionId]); parents.size > 0; ) {
    const below = all.filter(
      ({ id, parentId }) => parentId !== null && parents.has(parentId) && !found.has(id) && id !== sessionId,
    );
    for (const agent of below) found.set(agent.id, agent);
    parents = new Set(below.map(({ id }) => id));
  }
  return [...found.values()];
}
