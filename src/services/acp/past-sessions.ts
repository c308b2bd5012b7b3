import { posix } from "node:path";
import type { ListSessionsRequest, ListSessionsResponse, SessionInfo } from "@agentclientprotocol/sdk";
import type { SessionFileEntry } from "../../agent/index.js";
import { findSessionFiles, summarise } from "../../agent/index.js";
import type { HostProcesses } from "../../lib/owner.js";
import { invalidParams } from "./rpc-error.js";
import { titleText } from "./updates/shown-text.js";

const PAGE = 50;

/** One page of the sessions that can be continued, the latest first. Error: -32602 for an invalid cursor. */
export async function listSessions(
  { cwd, cursor }: Pick<ListSessionsRequest, "cwd" | "cursor">,
  { home, processes }: { home: string; processes: HostProcesses },
): Promise<ListSessionsResponse> {
  if (cwd != null && !posix.isAbsolute(cwd)) throw invalidParams("cwd must be an absolute path");
  const after = cursor == null ? null : placeIn(cursor);
  const files = (await findSessionFiles(home)).toSorted(latestFirst);
  const sessions: SessionInfo[] = [];
  for (const file of files) {
    if (after !== null && latestFirst(file, after) <= 0) continue;
    const info = await infoOf(file, processes);
    if (info === null || (cwd != null && info.cwd !== cwd)) continue;
    sessions.push(info);
    if (sessions.length > PAGE) break;
  }
  const page = sessions.slice(0, PAGE);
  const last = files.find(({ id }) => id === page.at(-1)?.sessionId);
  const hasMore = sessions.length > PAGE && last !== undefined;
  return { sessions: page, ...(hasMore ? { nextCursor: cursorAt(last) } : {}) };
}

/**
 * Describes a session to a client; null if it cannot be continued. The id is the one in the file's name, because a
 * session is looked up by it.
 */
async function infoOf(file: SessionFileEntry, processes: HostProcesses): Promise<SessionInfo | null> {
  const { cwd, prompt, status } = await summarise(file, processes);
  if (cwd === null || !posix.isAbsolute(cwd) || status === "unreadable") return null;
  return {
    sessionId: file.id,
    cwd,
    title: prompt === null ? null : titleText(prompt),
    updatedAt: file.updatedAt.toISOString(),
  };
}

type Place = Pick<SessionFileEntry, "updatedAt" | "id">;

function latestFirst(a: Place, b: Place): number {
  return b.updatedAt.getTime() - a.updatedAt.getTime() || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

function cursorAt({ updatedAt, id }: Place): string {
  return `${updatedAt.getTime()}.${id}`;
}

function placeIn(cursor: string): Place {
  const [, time, id] = /^(\d{1,15}(?:\.\d+)?)\.([A-Za-z0-9-]{1,200})$/.exec(cursor) ?? [];
  if (time === undefined || id === undefined) throw invalidParams("that is not a cursor of session/list");
  return { updatedAt: new Date(Number(time)), id };
}
