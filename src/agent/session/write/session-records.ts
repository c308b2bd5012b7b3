import type { BrigError, FullDisk } from "../../../errors.js";
import type { CallCause, EgressEntry, TruncationPolicy } from "../../../sandbox/index.js";
import { textEnd } from "../../../sandbox/index.js";
import type {
  ActionToReview,
  AnsweredApproval,
  ApprovalQuestion,
  CallOutcome,
} from "../../../tools/index.js";
import { type MessageItem, messageText, type ResponseItem, wireItem } from "../../model/items.js";
import type { ModelClient, TokenUsage } from "../../model/model-client.js";
import type { SessionReceipt } from "../receipts.js";
import type { SessionRestorePoint, UndoneChanges } from "../restore-point.js";
import { localDate, type SessionSetting } from "../setting.js";
import type { SessionRecord } from "./session-file.js";

export function sessionMeta(session: {
  threadId: string;
  startedAt: Date;
  cwd: string;
  version: string;
  provider: string;
  instructions: string;
  /** Null if it is not known. */
  branch: string | null;
  agent?: AgentOrigin | null | undefined;
}): SessionRecord {
  return {
    type: "session_meta",
    payload: {
      id: session.threadId,
      timestamp: session.startedAt.toISOString(),
      cwd: session.cwd,
      originator: "brig",
      cli_version: session.version,
      ...sourceOf(session.agent ?? null),
      model_provider: session.provider,
      ...(session.branch === null ? {} : { git: { branch: session.branch } }),
      base_instructions: { text: session.instructions },
    },
  };
}

/** The session that started an agent, and the way it did. */
export interface AgentOrigin {
  parentId: string;
  depth: number;
  nickname: string;
  /** Null for an agent without a role. */
  role: string | null;
  isForked: boolean;
}

/** Source of a session as Codex records it; `isolation` is brig's own. */
function sourceOf(agent: AgentOrigin | null): Readonly<Record<string, unknown>> {
  if (agent === null) return { source: "exec" };
  const { parentId, depth, nickname, role, isForked } = agent;
  const names = { agent_nickname: nickname, agent_role: role };
  return {
    parent_thread_id: parentId,
    source: { subagent: { thread_spawn: { parent_thread_id: parentId, depth, agent_path: null, ...names } } },
    ...names,
    isolation: isForked ? "fork" : "shared",
  };
}

export function turnContext(turn: {
  turnId: string;
  setting: SessionSetting;
  model: Pick<ModelClient, "model" | "reasoningEffort">;
  truncation: TruncationPolicy;
  now: Date;
}): SessionRecord {
  const { setting, model } = turn;
  return {
    type: "turn_context",
    payload: {
      turn_id: turn.turnId,
      cwd: setting.cwd,
      current_date: localDate(turn.now, setting.timezone),
      timezone: setting.timezone,
      shell: setting.shell,
      approval_policy: setting.approvalPolicy ?? "never",
      sandbox_policy: sandboxPolicy(setting),
      model: model.model,
      effort: model.reasoningEffort,
      summary: "auto",
      truncation_policy: turn.truncation,
    },
  };
}

/** The model from here on, chosen in the middle of a session. */
export function modelRecord({ provider, model, reasoningEffort }: ModelClient): SessionRecord {
  return { type: "brig.model", payload: { provider, model, effort: reasoningEffort } };
}

export function responseItem(item: ResponseItem): SessionRecord {
  return { type: "response_item", payload: wireItem(item) };
}

/** Returns the event that Codex's format has besides a message or reasoning item; null for other items. */
export function eventOfItem(item: ResponseItem): SessionRecord | null {
  if (item.type === "message" && item.role === "assistant")
    return event({ type: "agent_message", message: messageText(item) });
  if (item.type === "reasoning" && item.summary.length > 0)
    return event({ type: "agent_reasoning", text: item.summary.map(({ text }) => text).join("\n") });
  return null;
}

export function userMessageEvent(message: MessageItem): SessionRecord {
  const images = message.content.flatMap((part) => (part.type === "input_image" ? [part.image_url] : []));
  const prompt = message.content.at(-1);
  return event({ type: "user_message", message: prompt?.type === "input_text" ? prompt.text : "", images });
}

export function tokenCountEvent(total: TokenUsage, last: TokenUsage): SessionRecord {
  const info = { total_token_usage: wireUsage(total), last_token_usage: wireUsage(last) };
  return event({ type: "token_count", info });
}

export function turnStartedEvent(turnId: string): SessionRecord {
  return event({ type: "task_started", turn_id: turnId });
}

export function turnCompletedEvent(turnId: string, lastMessage: string | null): SessionRecord {
  return event({ type: "task_complete", turn_id: turnId, last_agent_message: lastMessage });
}

export function turnAbortedEvent(turnId: string): SessionRecord {
  return event({ type: "turn_aborted", turn_id: turnId, reason: "interrupted" });
}

/** Codex records the message alone. */
export function errorEvent({ message, code, reason, disk }: BrigError): SessionRecord {
  return event({ type: "error", message, code, reason, disk: wireDisk(disk) });
}

/** Lets a list of sessions read the number of turns from the end of a file. `number` counts from 1. */
export function turnRecord(turn: {
  turnId: string;
  number: number;
  status: "completed" | "failed" | "interrupted";
  model: string;
}): SessionRecord {
  const { turnId, ...rest } = turn;
  return { type: "brig.turn", payload: { turn_id: turnId, ...rest } };
}

export function sandboxRecord(sandbox: {
  id: string;
  image: string | undefined;
  proof: unknown;
  startMs: number;
  /** Name under which the states of a copy-on-write workspace are kept. Default: it has another workspace. */
  snapshotId?: string | null | undefined;
  /** Whether it is the second container, with full access. */
  isEscalated?: boolean;
}): SessionRecord {
  const { id, image, proof, startMs, snapshotId, isEscalated = false } = sandbox;
  const which = isEscalated ? { escalated: true } : {};
  const snapshot = snapshotId ? { snapshot: snapshotId } : {};
  return { type: "brig.sandbox", payload: { id, image, ...which, ...snapshot, start_ms: startMs, proof } };
}

export function receiptRecord(receipt: SessionReceipt): SessionRecord {
  return { type: "brig.receipt", payload: { ...receipt } };
}

export function approvalRecord(
  callId: string,
  asked: ApprovalQuestion & { answer?: AnsweredApproval; waitedMs?: number },
): SessionRecord {
  const { action, place, reason, denial, prefix, answer, waitedMs } = asked;
  return {
    type: "brig.approval",
    payload: {
      call_id: callId,
      tool: action.tool,
      ...subjectOf(action),
      place,
      reason,
      denial,
      prefix,
      // Undefined, and so left out, until the question is answered.
      answer,
      waited_ms: waitedMs,
    },
  };
}

function subjectOf(action: ActionToReview): Readonly<Record<string, unknown>> {
  switch (action.kind) {
    case "command":
      return { cwd: action.cwd, command: action.argv, justification: action.escalation.justification };
    case "patch":
      return {
        cwd: action.cwd,
        patch: action.patch,
        changes: action.changes.map(({ kind, path }) => ({ kind, path })),
      };
    case "mcp-call":
      // The arguments are in the call itself.
      return { server: action.server, server_tool: action.name, annotations: action.annotations };
    default:
      return action satisfies never;
  }
}

export function callRecord(
  { callId, name }: { callId: string; name: string },
  { success, durationMs, command }: CallOutcome,
): SessionRecord {
  return {
    type: "brig.call",
    payload: {
      call_id: callId,
      name,
      success,
      duration_ms: durationMs,
      exit_code: command?.exitCode,
      causes: wireCauses(command?.causes),
      user_ms: command?.usage.userMs,
      system_ms: command?.usage.systemMs,
      max_rss_bytes: command?.usage.maxRssBytes,
    },
  };
}

/** Writes a full disk as in session files and in `--json`. */
export function wireDisk(disk: FullDisk | undefined): Readonly<Record<string, unknown>> | undefined {
  if (disk === undefined) return undefined;
  const { owner, path, freeBytes, freeFiles } = disk;
  return { owner, path, free_bytes: freeBytes, free_files: freeFiles };
}

/** Writes causes as in session files and in `--json`. Undefined, and so left out, if there are none. */
export function wireCauses(
  causes: readonly CallCause[] | undefined,
): readonly Readonly<Record<string, unknown>>[] | undefined {
  return causes === undefined || causes.length === 0 ? undefined : causes.map(wireCause);
}

function wireCause(cause: CallCause): Readonly<Record<string, unknown>> {
  const { kind } = cause;
  switch (kind) {
    case "memory-limit":
      return { kind, limit_bytes: cause.limitBytes };
    case "full-directory":
    case "disk-full": {
      const { path, lacks, limit, wasFull } = cause;
      return { kind, path, lacks, limit, was_full: wasFull };
    }
    case "machine-memory":
    case "process-limit":
    case "cpu-limit":
    case "network-rule":
      return cause;
    default:
      return kind satisfies never;
  }
}

export function restorePointRecord(
  callId: string,
  { snapshot, number, count, changes }: SessionRestorePoint,
): SessionRecord {
  return {
    type: "brig.restore_point",
    payload: { call_id: callId, snapshot, point: number, count, changes },
  };
}

export function undoRecord({ point, undone, restores }: UndoneChanges): SessionRecord {
  const { snapshot, number, count, changes } = point;
  return {
    type: "brig.undo",
    payload: { snapshot, point: number, undone: undone.number, restores, count, changes },
  };
}

function event(payload: Readonly<Record<string, unknown>>): SessionRecord {
  return { type: "event_msg", payload };
}

function wireUsage(usage: TokenUsage) {
  return {
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    output_tokens: usage.outputTokens,
    reasoning_output_tokens: usage.reasoningOutputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

/** The sandbox in the words of Codex. */
export function sandboxPolicy({ sandboxMode, network, writableRoots }: SessionSetting) {
  const hasNetwork = network.kind !== "none";
  if (sandboxMode === "danger-full-access") return { type: sandboxMode };
  if (sandboxMode === "read-only") return { type: sandboxMode, network_access: hasNetwork };
  if (sandboxMode !== "workspace-write") return { type: "external-sandbox", policy: sandboxMode };
  return {
    type: sandboxMode,
    writable_roots: writableRoots,
    network_access: hasNetwork,
    exclude_tmpdir_env_var: false,
    exclude_slash_tmp: false,
  };
}

const MAX_OUTPUT_BYTES = 4096;

/** Records the end of a session's set-up, with the end of its output. `exitCode` is null if it was interrupted, or brig could not run it. */
export function setupRecord(setup: {
  sandboxId: string;
  argv: readonly string[];
  network: string;
  exitCode: number | null;
  durationMs: number | null;
  output: string;
}): SessionRecord {
  const { sandboxId, argv, network, exitCode, durationMs, output } = setup;
  return {
    type: "brig.setup",
    payload: {
      sandbox_id: sandboxId,
      command: argv,
      network,
      exit_code: exitCode,
      duration_ms: durationMs,
      output: textEnd(output, MAX_OUTPUT_BYTES),
    },
  };
}

/** Records the network of a sandbox. Attempts are only logged with an allow-list: otherwise brig does not see them. */
export function egressRecord(sandboxId: string, network: SessionSetting["network"]): SessionRecord {
  const isLogged = network.kind === "allowlist";
  return {
    type: "brig.egress",
    payload: {
      ...{ sandbox_id: sandboxId, network: network.kind },
      ...(isLogged ? { hosts: network.hosts } : {}),
      log: isLogged ? ATTEMPTS : null,
    },
  };
}

const ATTEMPTS = "brig.egress_attempt";

export function egressAttemptRecord(entry: EgressEntry): SessionRecord {
  return { type: ATTEMPTS, payload: wireEntry(entry) };
}

/** The fields of an entry as session files and the events of `--json` name them. */
export function wireEntry(entry: EgressEntry): Readonly<Record<string, unknown>> {
  return {
    started_at: new Date(entry.startedAtMs).toISOString(),
    count: entry.count,
    phase: entry.phase,
    call_id: entry.callId,
    program: entry.program,
    way: entry.way,
    host: entry.host,
    port: entry.port,
    method: entry.method,
    path: entry.path,
    outcome: entry.outcome,
    reason: entry.reason,
    message: entry.message,
    rule: entry.rule,
    bytes_out: entry.bytesOut,
    bytes_in: entry.bytesIn,
    duration_ms: entry.durationMs,
  };
}
