import { BrigError } from "../../../errors.js";
import { parseApprovalPolicy } from "../../../sandbox/index.js";
import { type MessageItem, messageText, type ResponseItem } from "../../model/items.js";
import { noUsage, type TokenUsage } from "../../model/model-client.js";
import { compactedItems, isFromUser, KEPT_USER_TOKENS } from "../compacted-items.js";
import type { SentContext } from "../setting.js";
import { type RecordedWorkspace, WorkspaceReading } from "./recorded-workspace.js";
import {
  type ReadRecord,
  readSessionLines,
  type SessionEvent,
  type SessionMeta,
  type TurnSettings,
  type WireUsage,
} from "./session-lines.js";

/** A session to be resumed, read from its file. */
export interface RecordedSession {
  path: string;
  threadId: string;
  meta: SessionMeta;
  /** The conversation after all compactions and rollbacks. Calls may lack their outputs. */
  items: ResponseItem[];
  /** The settings of the last turn; null if there was none. */
  lastTurn: TurnSettings | null;
  /** The context that the items last gave the model about where and how it works; null if none of it still applies. */
  sentContext: SentContext | null;
  /** The total of all requests. */
  usage: TokenUsage;
  turns: number;
  /** Null if its last sandbox had no copy-on-write workspace. */
  workspace: RecordedWorkspace | null;
  /** Whether its set-up was tried last, and in vain: nothing has run after it. */
  wasNotSetUp: boolean;
  /** Whether a file of unknown origin names the directory, because a copy of it has not run yet. */
  hasForeignDirectory: boolean;
  damage: SessionDamage;
}

export interface SessionDamage {
  unreadableLines: number;
  /** Whether the last line has no newline, because its process was killed or the disk was full. */
  hasTornEnd: boolean;
  /** The number of records that could not be written. */
  missingRecords: number;
}

/** More than any model can read. */
const MAX_HISTORY_BYTES = 512 * 1024 * 1024;

/** Beginnings of messages that have the role of the user but were written by other programs. */
const writtenByOthers: readonly string[] = [
  "<user_instructions>",
  "<ENVIRONMENT_CONTEXT>",
  "<skill>",
  "<INSTRUCTIONS>",
  "Another language model started to solve this problem",
];

/** Reads a whole session. A file that is not a session's, or is too large to resume, is `session.invalid`. */
export async function loadSession(
  path: string,
  options: { signal?: AbortSignal | undefined } = {},
): Promise<RecordedSession> {
  const reading = new SessionReading();
  for await (const line of readSessionLines(path, options)) {
    if (line.kind === "unreadable") reading.skip(line.isTorn);
    else reading.add(line.record, line.bytes.length);
    if (reading.historyBytes > MAX_HISTORY_BYTES)
      throw invalid(path, `its conversation is larger than ${MAX_HISTORY_BYTES} bytes`);
  }
  return reading.conclude(path);
}

/** Describes the damage in a sentence; null if there is none. */
export function describeDamage({
  unreadableLines,
  hasTornEnd,
  missingRecords,
}: SessionDamage): string | null {
  const torn = hasTornEnd ? 1 : 0;
  const parts = [
    ...(torn === 0 ? [] : ["its last line was cut off when it was written"]),
    ...counted(unreadableLines - torn, "line cannot be read", "lines cannot be read"),
    ...counted(missingRecords, "record could not be written", "records could not be written"),
  ];
  return parts.length === 0 ? null : `the session file is damaged: ${parts.join(", ")}`;
}

/** Whether a person wrote the item, and not a program in the role of the user. */
export function isPrompt(item: ResponseItem): item is MessageItem {
  if (!isFromUser(item)) return false;
  const text = messageText(item).trimStart();
  return !writtenByOthers.some((start) => text.startsWith(start));
}

export function tokenUsage(usage: WireUsage): TokenUsage {
  return {
    inputTokens: usage.input_tokens,
    cachedInputTokens: usage.cached_input_tokens,
    outputTokens: usage.output_tokens,
    reasoningOutputTokens: usage.reasoning_output_tokens,
  };
}

class SessionReading {
  #meta: SessionMeta | null = null;
  #items: ResponseItem[] = [];
  #lastTurn: TurnSettings | null = null;
  #sentContext: SentContext | null = null;
  #usage: TokenUsage = noUsage;
  #turns = 0;
  #hasForeignDirectory = false;
  #wasNotSetUp = false;
  readonly #workspace = new WorkspaceReading();
  #damage: SessionDamage = { unreadableLines: 0, hasTornEnd: false, missingRecords: 0 };
  #lines = 0;
  historyBytes = 0;

  skip(isTorn: boolean): void {
    this.#lines++;
    this.#damage.unreadableLines++;
    if (isTorn) this.#damage.hasTornEnd = true;
  }

  add(record: ReadRecord, bytes: number): void {
    this.#lines++;
    switch (record.type) {
      case "session_meta":
        // A fork contains the original's record as well, after its own.
        this.#meta ??= record.meta;
        break;
      case "turn_context":
        this.#lastTurn = record.context;
        this.#sentContext = contextIn(record.context);
        this.#hasForeignDirectory = false;
        break;
      case "response_item":
        if (isForTheModel(record.item)) this.#items.push(record.item);
        if (isPrompt(record.item)) this.#turns++;
        this.historyBytes += bytes;
        break;
      case "compacted":
        this.#items = record.replacement ?? rebuilt(this.#items, record.message);
        this.#sentContext = null;
        this.historyBytes = bytes;
        break;
      case "event_msg":
        this.#addEvent(record.event);
        break;
      case "brig":
        this.#workspace.add(record);
        if (record.name === "setup") this.#wasNotSetUp = record.payload.exit_code !== 0;
        if (record.name === "sandbox") this.#wasNotSetUp = false;
        if (record.name === "fork" && record.payload.is_foreign === true) this.#hasForeignDirectory = true;
        if (record.name === "gap") this.#damage.missingRecords += countOf(record.payload.lost_records);
        break;
      case "other":
        break;
      default:
        record satisfies never;
    }
  }

  conclude(path: string): RecordedSession {
    if (this.#lines === 0) throw invalid(path, "empty session file");
    if (this.#meta === null) throw invalid(path, "failed to parse thread ID from rollout file");
    return {
      path,
      threadId: this.#meta.id,
      meta: this.#meta,
      items: this.#items,
      lastTurn: this.#lastTurn,
      sentContext: this.#sentContext,
      usage: this.#usage,
      turns: this.#turns,
      workspace: this.#workspace.result,
      wasNotSetUp: this.#wasNotSetUp,
      hasForeignDirectory: this.#hasForeignDirectory,
      damage: this.#damage,
    };
  }

  #addEvent(event: SessionEvent): void {
    if (event.type === "token_count" && event.info) this.#usage = tokenUsage(event.info.total_token_usage);
    if (event.type === "thread_rolled_back") {
      const prompts = this.#items.flatMap((item, index) => (isPrompt(item) ? [index] : []));
      const from = prompts[Math.max(0, prompts.length - event.num_turns)];
      if (event.num_turns > 0 && from !== undefined) this.#items.length = from;
      this.#turns = Math.max(0, this.#turns - event.num_turns);
    }
  }
}

/** Null if the record is incomplete, as those of other programs may be. */
function contextIn(context: TurnSettings): SentContext | null {
  const { cwd, current_date, timezone, approval_policy, sandbox_policy, shell } = context;
  if (!cwd || !current_date || !timezone || !sandbox_policy || !shell) return null;
  const approval = parseApprovalPolicy(approval_policy);
  const { type, policy, network_access, writable_roots } = sandbox_policy;
  const hasNetwork = network_access === true || type === "danger-full-access";
  return {
    date: current_date,
    setting: {
      cwd,
      timezone,
      shell,
      sandboxMode: policy ?? type,
      approvalPolicy: approval.kind === "parsed" ? approval.policy : undefined,
      network: { kind: hasNetwork ? "full" : "none" },
      writableRoots: writable_roots ?? [],
    },
  };
}

/** Codex records snapshots of the workspace as items, but does not send them. */
function isForTheModel(item: ResponseItem): boolean {
  return item.type !== "opaque" || item.item.type !== "ghost_snapshot";
}

function rebuilt(items: readonly ResponseItem[], message: string): ResponseItem[] {
  return compactedItems(items, message, { context: [], keptTokens: KEPT_USER_TOKENS });
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 1;
}

function counted(count: number, one: string, many: string): string[] {
  return count <= 0 ? [] : [`${count} ${count === 1 ? one : many}`];
}

function invalid(path: string, reason: string): BrigError {
  return new BrigError(`${path}: ${reason}`, {
    code: "session.invalid",
    hint: "is it a session file? brig sessions lists those there are",
  });
}
