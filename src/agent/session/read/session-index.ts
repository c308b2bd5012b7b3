import { open, readdir, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { errnoOf } from "../../../lib/errno.js";
import { holderOf, isLockFileOf } from "../../../lib/file-lock.js";
import { type HostProcesses, readHostProcesses } from "../../../lib/owner.js";
import { suggest } from "../../../lib/suggest.js";
import { messageText } from "../../model/items.js";
import { type ReadRecord, readLine } from "./session-lines.js";
import { isPrompt } from "./session-reader.js";

/** Facts about a session from its file's name and directory entry. */
export interface SessionFileEntry {
  path: string;
  /** The id in the file name; the first record has the authoritative one. */
  id: string;
  updatedAt: Date;
  sizeBytes: number;
  /** Whether a lock lies beside the file; its process may be dead. */
  hasLock: boolean;
}

/** A session in a list, read from the start and the end of its file. */
export interface SessionSummary extends SessionFileEntry {
  startedAt: string | null;
  /** Null, like the next three, if the file does not say. */
  cwd: string | null;
  provider: string | null;
  model: string | null;
  /** The branch that was checked out when it began. */
  branch: string | null;
  /** The user's whole first prompt. */
  prompt: string | null;
  /** Null for a long file without the number in its end. */
  turns: number | null;
  forkedFromId: string | null;
  /** The session that started this one as an agent; null for a session that a person started. */
  parentId: string | null;
  /** The nickname of an agent; null for other sessions. */
  nickname: string | null;
  /** "in use": a process is writing it. "broken off": its process ended before the turn did. */
  status: "completed" | "interrupted" | "failed" | "in use" | "broken off" | "unreadable";
}

/** A session in a list to choose from, read from the start of its file. */
export type SessionHead = Pick<SessionSummary, "path" | "id" | "updatedAt" | "cwd" | "branch" | "prompt">;

const HEAD_BYTES = 128 * 1024;
/** Enough for the first record of nearly every session. */
const META_BYTES = 16 * 1024;
const TAIL_BYTES = 64 * 1024;
const OPEN_FILES = 64;
const FILE_NAME = /^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(.+)\.jsonl$/;

/** Finds all sessions in `$BRIG_HOME`, sorted by the time of the last change, the latest first. */
export async function findSessionFiles(home: string): Promise<SessionFileEntry[]> {
  const entries = await Promise.all((await dayFolders(home)).map(filesIn));
  return entries.flat().toSorted((a, b) => b.updatedAt.getTime() - a.updatedAt.getTime());
}

/**
 * Finds the session with an id, or the only one whose id starts with it. Errors: `session.unknown`, with a
 * suggestion, if there is none; `usage.invalid` if there are several.
 */
export async function findSession(home: string, id: string): Promise<SessionFileEntry> {
  const files = await findSessionFiles(home);
  const exact = files.find((file) => file.id === id);
  if (exact !== undefined) return exact;
  const matching = id === "" ? [] : files.filter((file) => file.id.startsWith(id.toLowerCase()));
  const [only] = matching;
  if (only !== undefined && matching.length === 1) return only;
  throw only === undefined ? unknown(id, files) : ambiguous(id, matching);
}

/**
 * Finds the session that was changed last, with `cwd` or, if that is null, anywhere; null if there is none.
 * Skips the sessions of agents.
 */
export async function findLastSession(
  home: string,
  { cwd }: { cwd: string | null },
): Promise<SessionFileEntry | null> {
  for (const file of await findSessionFiles(home)) {
    const { lines } = await readEnds(file, { tailBytes: 0 });
    const head = headOf(lines);
    if (head.parentId === null && (cwd === null || head.cwd === cwd)) return file;
  }
  return null;
}

/**
 * The sessions that a person can go on with, the last changed first, in pages: those of `cwd` or, if that is null, of any
 * directory. A page is read when it is asked for, and of sessions of other directories only the first record. Skips sessions of
 * agents, and those in which nobody has said anything.
 */
export async function* sessionPages(
  home: string,
  { cwd }: { cwd: string | null },
): AsyncGenerator<readonly SessionHead[]> {
  const files = await findSessionFiles(home);
  for (let from = 0; from < files.length; from += OPEN_FILES) {
    const heads = await Promise.all(files.slice(from, from + OPEN_FILES).map((file) => readHead(file, cwd)));
    yield heads.filter((head) => head !== null);
  }
}

async function readHead(file: SessionFileEntry, cwd: string | null): Promise<SessionHead | null> {
  const first = await readStartOf(file, META_BYTES);
  const meta = first.find((record) => record.type === "session_meta")?.meta;
  const isOther = meta !== undefined && (meta.parent_thread_id || (cwd !== null && meta.cwd !== cwd));
  if (isOther) return null;
  const head = headOf(firstPrompt(first) === null ? await readStartOf(file, HEAD_BYTES) : first);
  if (head.prompt === null || head.parentId !== null || (cwd !== null && head.cwd !== cwd)) return null;
  const { path, id, updatedAt } = file;
  return { path, id, updatedAt, cwd: head.cwd, prompt: head.prompt, branch: head.branch };
}

async function readStartOf(file: SessionFileEntry, headBytes: number): Promise<ReadRecord[]> {
  return (await readEnds(file, { headBytes, tailBytes: 0 })).lines;
}

/** Summarises sessions in the given order, with a limited number of open files. */
export async function summariseAll(
  files: readonly SessionFileEntry[],
  processes: HostProcesses,
): Promise<SessionSummary[]> {
  const summaries: SessionSummary[] = [];
  for (let from = 0; from < files.length; from += OPEN_FILES) {
    const some = files.slice(from, from + OPEN_FILES);
    summaries.push(...(await Promise.all(some.map((file) => summarise(file, processes)))));
  }
  return summaries;
}

/** Summarises a session without reading all of its file. */
export async function summarise(file: SessionFileEntry, processes: HostProcesses): Promise<SessionSummary> {
  const { lines, isWhole } = await readEnds(file);
  const head = headOf(lines);
  const isInUse = file.hasLock && (await holderOf(file.path, processes)) !== null;
  return {
    ...file,
    ...head,
    model: lastModel(lines),
    turns: turnsOf(lines, isWhole),
    status: isInUse ? "in use" : statusOf(lines),
  };
}

async function dayFolders(home: string): Promise<string[]> {
  let folders = [join(home, "sessions")];
  for (let depth = 0; depth < 3; depth++) {
    const below = await Promise.all(
      folders.map(async (folder) =>
        (await entriesOf(folder)).filter((name) => /^\d+$/.test(name)).map((name) => join(folder, name)),
      ),
    );
    folders = below.flat();
  }
  return folders;
}

async function filesIn(folder: string): Promise<SessionFileEntry[]> {
  const names = await entriesOf(folder);
  const claims = names.filter((name) => name.endsWith(".lock"));
  const found = await Promise.all(
    names.map(async (name) => {
      const id = FILE_NAME.exec(name)?.[1];
      if (id === undefined) return [];
      const path = join(folder, name);
      const facts = await stat(path).catch(() => null);
      if (facts === null || !facts.isFile()) return [];
      const hasLock = claims.some((claim) => isLockFileOf(claim, path));
      return [{ path, id, updatedAt: facts.mtime, sizeBytes: facts.size, hasLock }];
    }),
  );
  return found.flat();
}

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw new BrigError(`the sessions in ${folder} cannot be read`, {
      code: "session.invalid",
      cause: error,
    });
  }
}

type Head = Pick<
  SessionSummary,
  "startedAt" | "cwd" | "provider" | "branch" | "prompt" | "forkedFromId" | "parentId" | "nickname"
>;

function headOf(lines: readonly ReadRecord[]): Head {
  const meta = lines.find((record) => record.type === "session_meta")?.meta;
  return {
    startedAt: meta?.timestamp ?? null,
    cwd: meta?.cwd ?? null,
    provider: meta?.model_provider ?? null,
    branch: meta?.git?.branch ?? null,
    prompt: firstPrompt(lines),
    forkedFromId: meta?.forked_from_id ?? null,
    parentId: meta?.parent_thread_id ?? null,
    nickname: meta?.agent_nickname ?? null,
  };
}

function firstPrompt(lines: readonly ReadRecord[]): string | null {
  for (const record of lines) {
    if (record.type === "event_msg" && record.event.type === "user_message") return record.event.message;
    if (record.type === "response_item" && isPrompt(record.item)) return messageText(record.item);
  }
  return null;
}

function lastModel(lines: readonly ReadRecord[]): string | null {
  for (const record of lines.toReversed()) {
    if (record.type === "turn_context") return record.context.model ?? null;
    if (record.type === "brig" && record.name === "turn" && typeof record.payload.model === "string")
      return record.payload.model;
  }
  return null;
}

/** Takes the number from the last turn's record, or counts the turns if the whole file was read. */
function turnsOf(lines: readonly ReadRecord[], isWhole: boolean): number | null {
  const turn = lines.findLast((record) => record.type === "brig" && record.name === "turn");
  const number = turn?.type === "brig" ? turn.payload.number : undefined;
  if (typeof number === "number") return number;
  return isWhole ? lines.filter((record) => record.type === "turn_context").length : null;
}

function statusOf(lines: readonly ReadRecord[]): SessionSummary["status"] {
  for (const record of lines.toReversed()) {
    if (record.type !== "event_msg") continue;
    if (record.event.type === "task_complete") return "completed";
    if (record.event.type === "turn_aborted") return "interrupted";
    if (record.event.type === "error") return "failed";
    if (record.event.type === "task_started") return "broken off";
  }
  return lines.some(({ type }) => type === "session_meta") ? "broken off" : "unreadable";
}

/** Reads the records at the start and the end of a file. */
async function readEnds(
  { path, sizeBytes }: SessionFileEntry,
  { headBytes = HEAD_BYTES, tailBytes = TAIL_BYTES } = {},
): Promise<{ lines: ReadRecord[]; isWhole: boolean }> {
  const isWhole = sizeBytes <= headBytes + tailBytes;
  const file = await open(path).catch(() => null);
  if (file === null) return { lines: [], isWhole: false };
  try {
    const read = async (from: number, length: number) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from);
      return buffer.subarray(0, bytesRead);
    };
    if (isWhole) return { lines: recordsIn(await read(0, sizeBytes)), isWhole };
    const head = await read(0, headBytes);
    const tail = await read(sizeBytes - tailBytes, tailBytes);
    const cutHead = head.subarray(0, head.lastIndexOf("\n") + 1);
    const cutTail = tail.subarray(tail.indexOf("\n") + 1);
    return { lines: [...recordsIn(cutHead), ...recordsIn(cutTail)], isWhole };
  } finally {
    await file.close();
  }
}

function recordsIn(bytes: Buffer): ReadRecord[] {
  const records: ReadRecord[] = [];
  for (let from = 0; from < bytes.length; ) {
    const newline = bytes.indexOf("\n", from);
    const end = newline === -1 ? bytes.length : newline;
    const line = readLine({ bytes: bytes.subarray(from, end), isWhole: newline !== -1 }, 0);
    if (line?.kind === "record") records.push(line.record);
    from = end + 1;
  }
  return records;
}

function unknown(id: string, files: readonly SessionFileEntry[]): BrigError {
  const near = suggest(
    id,
    files.map((file) => file.id),
  );
  return new BrigError(`there is no session ${JSON.stringify(id)}`, {
    code: "session.unknown",
    hint: near === null ? "brig sessions lists them" : `did you mean ${near}?`,
  });
}

function ambiguous(id: string, matching: readonly SessionFileEntry[]): BrigError {
  const shown = matching.slice(0, 5).map((file) => file.id);
  const more = matching.length > shown.length ? `, and ${matching.length - shown.length} more` : "";
  return new BrigError(
    `${matching.length} sessions start with ${JSON.stringify(id)}: ${shown.join(", ")}${more}`,
    {
      code: "usage.invalid",
      hint: "give more of the id",
    },
  );
}

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
