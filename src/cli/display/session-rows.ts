import type { SessionSummary } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { formatBytes } from "../../lib/bytes.js";
import { fitRows } from "../../lib/terminal/table.js";

const SHOWN_PROMPT_CHARS = 60;

export const sessionHeader = ["UPDATED", "ID", "STATUS", "TURNS", "SIZE", "MODEL", "DIRECTORY", "PROMPT"];

/** On a terminal each session is one line; the least useful columns are left out if there is no room. */
export function fittingRows(rows: string[][], { stdout }: CliContext): string[][] {
  const { isTTY, columns } = stdout;
  if (isTTY !== true || columns === undefined) return rows;
  return fitRows(rows, { columns, expendable: ["SIZE", "MODEL", "TURNS", "DIRECTORY", "STATUS"] });
}

/** The sessions of agents follow the session that started them, if that is among them. */
export function inFamilies(sessions: readonly SessionSummary[]): SessionSummary[] {
  const known = new Set(sessions.map(({ id }) => id));
  const below = (id: string): SessionSummary[] =>
    sessions.filter(({ parentId }) => parentId === id).flatMap((child) => [child, ...below(child.id)]);
  return sessions
    .filter(({ parentId }) => parentId === null || !known.has(parentId))
    .flatMap((session) => [session, ...below(session.id)]);
}

export function sessionRow(session: SessionSummary): string[] {
  return [
    localTime(session.updatedAt),
    session.id,
    session.status,
    session.turns === null ? "" : String(session.turns),
    formatBytes(session.sizeBytes),
    session.model ?? "",
    session.cwd ?? "",
    shortened(`${familyMark(session)}${session.prompt ?? ""}`),
  ];
}

function familyMark({ parentId, nickname }: SessionSummary): string {
  return parentId === null ? "" : `└ ${nickname ?? "agent"}: `;
}

function localTime(time: Date): string {
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16).replace("T", " ");
}

function shortened(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length <= SHOWN_PROMPT_CHARS ? line : `${line.slice(0, SHOWN_PROMPT_CHARS - 1)}…`;
}
