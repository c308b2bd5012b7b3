import { z } from "zod";
import { BrigError } from "../../../errors.js";
import type { EgressEntry } from "../../../sandbox/index.js";
import { parseApprovalPolicy } from "../../../sandbox/index.js";
import { type MessageItem, messageText, type ResponseItem } from "../../model/items.js";
import { noUsage, type TokenUsage } from "../../model/model-client.js";
import { compactedItems, isFromUser, KEPT_USER_TOKENS } from "../compacted-items.js";
import type { SessionRestorePoint } from "../restore-point.js";
import type { SentContext } from "../setting.js";
import {
  type ReadRecord,
  readSessionLines,
  type SessionEvent,
  type SessionLine,
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
  /** The model of the last turn, or one that was chosen after it; null if unknown. */
  model: RecordedModel | null;
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

/** A model that a session has used. */
export interface RecordedModel {
  provider: string;
  name: string;
  /** Null for the endpoint's own default, and if it is not known. */
  effort: string | null;
  /** Whether it was chosen in the middle of a session, and not by the configuration. */
  isChosen: boolean;
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
  #model: RecordedModel | null = null;
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
        this.#addModelOf(record.context);
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
        if (record.name === "model") this.#addModel(record.payload);
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
      model: this.#model,
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

  #addModelOf({ model: name, effort = null }: TurnSettings): void {
    const provider = this.#model?.provider ?? this.#meta?.model_provider;
    if (!name || !provider) return;
    this.#model = { provider, name, effort, isChosen: this.#model?.isChosen ?? false };
  }

  /** Reasoning is encrypted by its provider, and another one refuses it. */
  #addModel(payload: unknown): void {
    const { data } = modelPayload.safeParse(payload);
    if (data === undefined) return;
    const { provider, model: name, effort = null } = data;
    const isOther = provider !== (this.#model?.provider ?? this.#meta?.model_provider);
    if (isOther) this.#items = this.#items.filter(({ type }) => type !== "reasoning");
    this.#model = { provider, name, effort, isChosen: true };
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

const text = z.string().max(2000);
const found = z.looseObject({ assertion: text, promised: text, kernel: text });

const keys = z.array(z.looseObject({ name: text, hosts: z.array(text).max(1000) })).max(1000);

/** A session file may come from anywhere, so each field is checked. */
const proofWire = z
  .looseObject({
    id: text,
    image: text.nullish(),
    escalated: z.boolean().nullish(),
    start_ms: z.number().nonnegative().nullish(),
    proof: z.looseObject({
      policy: text,
      differences: z.array(found).max(100),
      notProvable: z.array(found.extend({ reason: text })).max(100),
      summary: z.record(text, text),
      engine: z.looseObject({ product: text, version: text, kernel: text }),
      runtime: text,
      imageId: text,
      egress: z
        .looseObject({
          ruledHosts: z.array(text).max(1000),
          secrets: keys,
          awsKeys: keys,
          canaries: z.array(text).max(1000),
        })
        .optional()
        .catch(undefined),
    }),
  })
  .transform(({ id, image, escalated, start_ms, proof }) => ({
    sandbox: id,
    image: image ?? null,
    /** Whether it is the container for commands that were allowed to run with full access. */
    isEscalated: escalated ?? false,
    startMs: start_ms ?? null,
    proof,
  }));

/** Statements of the kernel about the policy of a session's sandbox, from before the first command ran in it. */
export type SessionProof = z.infer<typeof proofWire>;

/** One of each sandbox of the session, in the order in which they were opened. A record that cannot be read is left out. */
export async function* proofsOf(lines: AsyncIterable<SessionLine>): AsyncIterable<SessionProof> {
  for await (const line of lines) {
    if (line.kind !== "record" || line.record.type !== "brig") continue;
    if (line.record.name !== "sandbox") continue;
    const read = proofWire.safeParse(line.record.payload);
    if (read.success) yield read.data;
  }
}

const count = z.int().nonnegative();
const shortText = z.string().max(1000);

/** A session file may come from anywhere, so each field is checked. */
const egressWire = z
  .looseObject({
    started_at: z.iso.datetime(),
    count: z.int().positive(),
    // Files of earlier versions do not say it.
    phase: z.enum(["setup", "run"]).catch("run"),
    call_id: shortText.nullish(),
    program: shortText.nullish(),
    way: z.enum(["http", "connect", "socks", "direct", "name"]).nullish().catch(null),
    host: shortText.nullish(),
    port: z.int().min(0).max(65_535).nullish(),
    method: shortText.nullish(),
    path: shortText.nullish(),
    outcome: z.enum(["allowed", "denied", "failed"]),
    reason: shortText.nullish(),
    message: z.string().max(2000).nullish(),
    rule: shortText.nullish(),
    bytes_out: count.catch(0),
    bytes_in: count.catch(0),
    duration_ms: z.number().nonnegative().catch(0),
  })
  .transform((entry): EgressEntry => {
    return {
      startedAtMs: Date.parse(entry.started_at),
      count: entry.count,
      phase: entry.phase,
      callId: entry.call_id ?? null,
      program: entry.program ?? null,
      way: entry.way ?? null,
      host: entry.host ?? null,
      port: entry.port ?? null,
      method: entry.method ?? null,
      path: entry.path ?? null,
      outcome: entry.outcome,
      reason: entry.reason ?? null,
      message: entry.message ?? null,
      rule: entry.rule ?? null,
      bytesOut: entry.bytes_out,
      bytesIn: entry.bytes_in,
      durationMs: entry.duration_ms,
    };
  });

/** Attempts of the session's programs to reach something, in the order in which they ended. A record that cannot be read is left out. */
export async function* egressOf(lines: AsyncIterable<SessionLine>): AsyncIterable<EgressEntry> {
  for await (const line of lines) {
    if (line.kind !== "record" || line.record.type !== "brig") continue;
    if (line.record.name !== "egress_attempt") continue;
    const read = egressWire.safeParse(line.record.payload);
    if (read.success) yield read.data;
  }
}

/** The copy-on-write workspace that a session had last. */
export interface RecordedWorkspace {
  /**
   * Places where its state may be stored. Use the first of these that exists. If one with `isCertain` is missing, the
   * state is lost; if none exists, nothing was changed.
   */
  readonly states: readonly RecordedState[];
}

/** A state of a copy-on-write workspace, by the names under which it is kept. */
export interface RecordedState {
  readonly snapshot: string;
  /** The number of the restore point; null for the last. */
  readonly point: number | null;
  /** Whether it must exist. A workspace in which nothing was changed leaves no snapshot. */
  readonly isCertain: boolean;
}

const name = z.string().min(1).max(200);
const number = z.int().nonnegative();

const pointPayload = z.object({
  snapshot: name,
  point: number,
  count: number,
  changes: z
    .array(z.object({ path: z.string(), change: z.enum(["added", "modified", "deleted"]) }))
    .max(1000),
});
const modelPayload = z.object({ provider: name, model: name, effort: name.nullish().catch(null) });
const sandboxPayload = z.object({ snapshot: name.nullish().catch(null), escalated: z.unknown().optional() });
const receiptPayload = z.object({ changes: z.object({ snapshot: name }) });

/** Reads the payload of `brig.restore_point` and `brig.undo`. Returns null for one that is not valid. */
export function readPoint(payload: unknown): SessionRestorePoint | null {
  const { data } = pointPayload.safeParse(payload);
  if (data === undefined) return null;
  const { point, ...rest } = data;
  return { ...rest, number: point };
}

/** Follows the records of a session, to find where the last state of its workspace is kept. */
export class WorkspaceReading {
  /** The latest first. Null: the workspace is not copy-on-write. */
  #states: RecordedState[] | null = null;
  /** Number of states that are the session's own, and not those of the session that it was forked from. */
  #ownCount = 0;

  add({ name: kind, payload }: ReadRecord & { type: "brig" }): void {
    if (kind === "sandbox") this.#addSandbox(payload);
    else if (kind === "restore_point" || kind === "undo") this.#addPoint(payload);
    else if (kind === "receipt") this.#addReceipt(payload);
    else if (kind === "fork") this.#addFork(payload);
  }

  get result(): RecordedWorkspace | null {
    if (this.#states === null) return null;
    // The session's own last state may be newer than its last record, so it is taken without a number. A
    // later state of the original session may belong to steps that were not copied.
    const states = this.#states.map((state, at) => (at < this.#ownCount ? { ...state, point: null } : state));
    return { states };
  }

  #addSandbox(payload: unknown): void {
    const { data } = sandboxPayload.safeParse(payload);
    if (data === undefined || data.escalated === true) return;
    if (!data.snapshot) this.#forget();
    else if (this.#states?.[0]?.snapshot !== data.snapshot)
      this.#begin({ snapshot: data.snapshot, point: 0, isCertain: false });
  }

  #addPoint(payload: unknown): void {
    const point = readPoint(payload);
    if (point !== null) this.#keep(point.snapshot, point.number);
  }

  #addReceipt(payload: unknown): void {
    const { data } = receiptPayload.safeParse(payload);
    if (data !== undefined) this.#keep(data.changes.snapshot, null);
  }

  #addFork({ is_foreign: isForeign }: Readonly<Record<string, unknown>>): void {
    // A file of unknown origin could name the snapshot of another session.
    if (isForeign === true) this.#forget();
    this.#ownCount = 0;
  }

  /** Notes a point, if it belongs to the workspace of the last recorded sandbox. */
  #keep(snapshot: string, point: number | null): void {
    const [current, ...before] = this.#states ?? [];
    if (current?.snapshot === snapshot) this.#states = [{ snapshot, point, isCertain: true }, ...before];
  }

  #begin(state: RecordedState): void {
    this.#states = [state, ...(this.#states ?? [])];
    this.#ownCount++;
  }

  #forget(): void {
    this.#states = null;
    this.#ownCount = 0;
  }
}
