import { createReadStream } from "node:fs";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { errnoOf } from "../../../lib/errno.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { withoutMark } from "../../../lib/utf8.js";
import type { ResponseItem } from "../../model/items.js";
import { parseItem } from "../../model/parse-item.js";

/** One line of a session file. All of it is untrusted: it may come from a container or another program. */
export type SessionLine =
  | {
      kind: "record";
      /** The line number, from 1. */
      line: number;
      /** ISO 8601; null if the line has none. */
      timestamp: string | null;
      record: ReadRecord;
      /** The line as it is in the file, without its newline. */
      bytes: Buffer;
    }
  /** `isTorn`: it is the last line and has no newline. */
  | { kind: "unreadable"; line: number; isTorn: boolean };

export type ReadRecord =
  | { type: "session_meta"; meta: SessionMeta }
  | { type: "turn_context"; context: TurnSettings }
  | { type: "response_item"; item: ResponseItem }
  /** `replacement` is null if the file does not contain the compacted items. */
  | { type: "compacted"; message: string; replacement: ResponseItem[] | null }
  | { type: "event_msg"; event: SessionEvent }
  | { type: "brig"; name: string; payload: Readonly<Record<string, unknown>> }
  /** A kind of record that brig does not know. */
  | { type: "other"; name: string };

/** Longer than any record that is written; longer lines are not read. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
const NEWLINE = 0x0a;

const text = z.string();

const sessionMeta = z.looseObject({
  id: text.min(1).max(200),
  forked_from_id: text.nullish(),
  /** These four are only in the files of agents. */
  parent_thread_id: text.nullish().catch(null),
  agent_nickname: text.nullish().catch(null),
  agent_role: text.nullish().catch(null),
  isolation: text.nullish().catch(null),
  timestamp: text.nullish(),
  cwd: text.nullish(),
  originator: text.nullish(),
  cli_version: text.nullish(),
  model_provider: text.nullish(),
  git: z
    .looseObject({ branch: text.nullish().catch(null) })
    .nullish()
    .catch(null),
  base_instructions: z
    .union([text, z.looseObject({ text }).transform(({ text: instructions }) => instructions)])
    .nullish()
    .catch(null),
});

const turnContext = z.looseObject({
  turn_id: text.nullish(),
  cwd: text.nullish().catch(null),
  current_date: text.nullish().catch(null),
  timezone: text.nullish().catch(null),
  approval_policy: z.unknown().optional(),
  sandbox_policy: z
    .looseObject({
      type: text,
      network_access: z.unknown().optional(),
      writable_roots: z.array(text).nullish().catch(null),
      policy: text.nullish().catch(null),
    })
    .nullish()
    .catch(null),
  shell: text.nullish().catch(null),
  truncation_policy: z
    .object({ mode: z.enum(["tokens", "bytes"]), limit: z.int().positive() })
    .nullish()
    .catch(null),
  model: text.nullish().catch(null),
  effort: text.nullish().catch(null),
});

const usage = z.looseObject({
  input_tokens: z.number().catch(0),
  cached_input_tokens: z.number().catch(0),
  output_tokens: z.number().catch(0),
  reasoning_output_tokens: z.number().catch(0),
});

const events = {
  user_message: z.looseObject({ type: z.literal("user_message"), message: text }),
  token_count: z.looseObject({
    type: z.literal("token_count"),
    info: z.looseObject({ total_token_usage: usage, last_token_usage: usage }).nullish().catch(null),
  }),
  task_started: z.looseObject({ type: z.literal("task_started") }),
  task_complete: z.looseObject({ type: z.literal("task_complete") }),
  turn_aborted: z.looseObject({ type: z.literal("turn_aborted") }),
  error: z.looseObject({ type: z.literal("error"), message: text.catch("") }),
  thread_rolled_back: z.looseObject({
    type: z.literal("thread_rolled_back"),
    num_turns: z.int().nonnegative(),
  }),
};

/** Newer versions of Codex have renamed these events. */
const otherNames: Readonly<Record<string, keyof typeof events>> = {
  turn_started: "task_started",
  turn_complete: "task_complete",
};

export type SessionMeta = z.output<typeof sessionMeta>;
export type TurnSettings = z.output<typeof turnContext>;
export type WireUsage = z.output<typeof usage>;
export type SessionEvent =
  | { [Name in keyof typeof events]: z.output<(typeof events)[Name]> }[keyof typeof events]
  | { type: "other"; name: string };

/**
 * Reads a session file, with one line in memory at a time. Blank lines are skipped; a line that is not a
 * record is `unreadable`. A file that cannot be read is `session.invalid`.
 */
export async function* readSessionLines(
  path: string,
  { signal }: { signal?: AbortSignal | undefined } = {},
): AsyncIterable<SessionLine> {
  let line = 0;
  for await (const raw of rawLines(path, signal)) {
    line++;
    const read = readLine(raw, line);
    if (read !== null) yield read;
  }
}

/** Returns null for a blank line. */
export function readLine({ bytes, isWhole }: RawLine, line: number): SessionLine | null {
  const unreadable: SessionLine = { kind: "unreadable", line, isTorn: !isWhole };
  if (bytes === null) return unreadable;
  const written = withoutMark(bytes.toString("utf8"));
  if (written.trim() === "") return null;
  try {
    const parsed: unknown = JSON.parse(written);
    if (isTooDeep(parsed)) return unreadable;
    const { timestamp, type, payload } = envelope.parse(parsed);
    const record = readRecord(type, payload);
    return { kind: "record", line, timestamp: timestamp ?? null, record, bytes };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return unreadable;
    throw error;
  }
}

const envelope = z.looseObject({
  timestamp: text.nullish().catch(null),
  type: text,
  payload: z.record(text, z.unknown()),
});

function readRecord(type: string, payload: Record<string, unknown>): ReadRecord {
  switch (type) {
    case "session_meta":
      return { type, meta: sessionMeta.parse(payload) };
    case "turn_context":
      return { type, context: turnContext.parse(payload) };
    case "response_item":
      return { type, item: readItem(payload) };
    case "compacted":
      return { type, ...readCompacted(payload) };
    case "event_msg":
      return { type, event: readEvent(payload) };
    default:
      if (type.startsWith("brig.")) return { type: "brig", name: type.slice("brig.".length), payload };
      return { type: "other", name: type };
  }
}

/** Codex adds notes to items that endpoints refuse. */
function readItem(payload: unknown): ResponseItem {
  const item = parseItem(payload);
  if (item.type !== "opaque") return item;
  const { internal_chat_message_metadata_passthrough: _notes, ...kept } = item.item;
  return { type: "opaque", item: kept };
}

const compacted = z.looseObject({
  message: text.catch(""),
  replacement_history: z.array(z.unknown()).nullish(),
});

function readCompacted(payload: unknown): { message: string; replacement: ResponseItem[] | null } {
  const { message, replacement_history } = compacted.parse(payload);
  return { message, replacement: replacement_history?.map(readItem) ?? null };
}

function readEvent(payload: Record<string, unknown>): SessionEvent {
  const name = text.catch("").parse(payload.type);
  const type = otherNames[name] ?? name;
  if (!isEventName(type)) return { type: "other", name };
  return events[type].parse({ ...payload, type });
}

function isEventName(name: string): name is keyof typeof events {
  return Object.hasOwn(events, name);
}

interface RawLine {
  /** Null if the line is too long. */
  bytes: Buffer | null;
  /** Whether the line has a newline. */
  isWhole: boolean;
}

async function* rawLines(path: string, signal: AbortSignal | undefined): AsyncIterable<RawLine> {
  const partial = new PartialLine();
  try {
    const chunks: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: 256 * 1024, signal });
    for await (const chunk of chunks) {
      let from = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
        yield { bytes: partial.take(chunk.subarray(from, end)), isWhole: true };
        from = end + 1;
      }
      partial.add(chunk.subarray(from));
    }
  } catch (cause) {
    signal?.throwIfAborted();
    throw unreadableFile(path, cause);
  }
  if (!partial.isEmpty) yield { bytes: partial.take(Buffer.alloc(0)), isWhole: false };
}

/** Collects the pieces of a line, unless it is too long. */
class PartialLine {
  #pieces: Buffer[] = [];
  #size = 0;

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  add(piece: Buffer): void {
    this.#size += piece.length;
    if (this.#size > MAX_LINE_BYTES) this.#pieces = [];
    else if (piece.length > 0) this.#pieces.push(Buffer.from(piece));
  }

  /** Returns the whole line, or null if it is too long, and starts the next one. */
  take(last: Buffer): Buffer | null {
    this.add(last);
    const line = this.#size > MAX_LINE_BYTES ? null : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#size = 0;
    return line;
  }
}

function unreadableFile(path: string, cause: unknown): BrigError {
  const isDirectory = errnoOf(cause) === "EISDIR";
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new BrigError(
    `the session file ${path} cannot be read: ${isDirectory ? "it is a directory" : reason}`,
    {
      code: "session.invalid",
      cause,
    },
  );
}
