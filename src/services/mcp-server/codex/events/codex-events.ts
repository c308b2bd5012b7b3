import type { AgentEvent, TokenUsage } from "../../../../agent/index.js";
import { createThreadId, noUsage, sandboxPolicy, usageTogether } from "../../../../agent/index.js";
import type { BrigError, ErrorCode } from "../../../../errors.js";
import { CallItems } from "./call-items.js";
import type { CodexEvent, CodexMessage, ThreadFacts } from "./codex-event.js";

interface OpenTurn {
  id: string;
  startedAt: Date;
  firstTokenAt: Date | null;
  lastMessage: string | null;
}

/**
 * Translates a session's events into those of Codex. Codex reports most things twice: in the form of items,
 * and in an older form with a type for each kind of thing.
 */
export class CodexEvents {
  readonly #facts: ThreadFacts;
  readonly #calls: CallItems;
  #turn: OpenTurn = { id: "", startedAt: new Date(0), firstTokenAt: null, lastMessage: null };
  #nextItem = 1;
  #message: { id: string; startedAt: number } | null = null;
  #usage: { total: TokenUsage; last: TokenUsage };
  #hasNewUsage = false;

  constructor(facts: ThreadFacts, usage: TokenUsage = noUsage) {
    this.#facts = facts;
    this.#usage = { total: usage, last: noUsage };
    this.#calls = new CallItems({ facts, turnId: () => this.#turn.id });
  }

  get turnId(): string {
    return this.#turn.id;
  }

  /** The first event of a session in this process. */
  configured(): CodexEvent {
    const { threadId, model, provider, sessionFile, setting } = this.#facts;
    const { approvalPolicy, cwd } = setting();
    const msg = {
      type: "session_configured",
      session_id: threadId,
      thread_id: threadId,
      model,
      model_provider_id: provider,
      approval_policy: approvalPolicy ?? "never",
      approvals_reviewer: "user",
      sandbox_policy: sandboxPolicy(setting()),
      cwd,
      ...(sessionFile === null ? {} : { rollout_path: sessionFile }),
    };
    return { id: "", msg };
  }

  /** Called before the turn. */
  begin(prompt: string): readonly CodexEvent[] {
    const { windowTokens, now } = this.#facts;
    this.#turn = { id: createThreadId(now()), startedAt: now(), firstTokenAt: null, lastMessage: null };
    this.#message = null;
    const item = {
      type: "UserMessage",
      id: createThreadId(now()),
      content: [{ type: "text", text: prompt, text_elements: [] }],
    };
    return this.#own([
      {
        type: "task_started",
        turn_id: this.#turn.id,
        started_at: seconds(this.#turn.startedAt),
        model_context_window: windowTokens(),
        collaboration_mode_kind: "default",
      },
      ...this.#calls.item(item),
      {
        type: "user_message",
        message: prompt,
        images: [],
        local_images: [],
        audio: [],
        local_audio: [],
        text_elements: [],
      },
    ]);
  }

  /**
   * Called with the token counts of each response. As in Codex, they are sent after the calls of the response
   * have ended.
   */
  count(last: TokenUsage): void {
    const { total } = this.#usage;
    this.#usage = { last, total: usageTogether(total, last) };
    this.#hasNewUsage = true;
  }

  /** Called before each request to the model. */
  beginResponse(): readonly CodexEvent[] {
    return this.#own(this.#tokenCount());
  }

  translate(event: AgentEvent): readonly CodexEvent[] {
    return this.#own(this.#messagesOf(event));
  }

  #own(messages: readonly CodexMessage[]): readonly CodexEvent[] {
    return messages.map((msg) => ({ id: this.#turn.id, msg }));
  }

  #messagesOf(event: AgentEvent): readonly CodexMessage[] {
    if ("callId" in event) return this.#calls.translate(event);
    switch (event.kind) {
      case "text-delta":
        return this.#delta(event.text);
      case "message":
        return this.#assistantMessage(event.text);
      case "reasoning":
        return this.#reasoning(event.text);
      case "web-searched": {
        const call_id = `ws_${this.#nextItem++}`;
        return [
          { type: "web_search_begin", call_id },
          { type: "web_search_end", call_id, query: event.query, action: event.action },
        ];
      }
      case "reconnecting":
        return [
          {
            type: "stream_error",
            message: `Reconnecting... ${event.attempt}/${event.maxAttempts}`,
            additional_details: event.reason,
          },
        ];
      case "compacted":
        return [{ type: "context_compacted" }];
      case "warning":
        return [{ type: "warning", message: event.message }];
      case "turn-completed":
        return [...this.#tokenCount(), this.#completed()];
      case "turn-failed":
        return [...this.#tokenCount(), errorMessage(event.error)];
      case "turn-interrupted":
        return [...this.#tokenCount(), this.#aborted()];
      case "session-started":
      case "turn-started":
      case "sandbox-ready":
      case "setup-started":
      case "setup-output":
      case "setup-ended":
      case "mcp-servers-starting":
      case "request-started":
      case "request-ended":
      case "compaction-started":
      case "receipt":
      case "egress":
      case "agent-started":
      case "agent-state":
      case "agent-event":
        return [];
      default:
        return event satisfies never;
    }
  }

  #delta(text: string): CodexMessage[] {
    const { threadId, now } = this.#facts;
    this.#turn.firstTokenAt ??= now();
    const isFirst = this.#message === null;
    this.#message ??= { id: `msg_${this.#nextItem++}`, startedAt: now().getTime() };
    const { id, startedAt } = this.#message;
    const delta = {
      type: "agent_message_content_delta",
      thread_id: threadId,
      turn_id: this.#turn.id,
      item_id: id,
      delta: text,
    };
    return isFirst ? [this.#calls.started(messageItem(id, ""), startedAt), delta] : [delta];
  }

  #assistantMessage(text: string): CodexMessage[] {
    this.#turn.firstTokenAt ??= this.#facts.now();
    this.#turn.lastMessage = text;
    const open = this.#message;
    this.#message = null;
    const items =
      open === null
        ? this.#calls.item(messageItem(`msg_${this.#nextItem++}`, text))
        : [this.#calls.completed(messageItem(open.id, text), open.startedAt)];
    return [...items, { type: "agent_message", message: text, phase: null, memory_citation: null }];
  }

  #reasoning(text: string): CodexMessage[] {
    this.#turn.firstTokenAt ??= this.#facts.now();
    if (text === "") return [];
    const item = {
      type: "Reasoning",
      id: `rs_${this.#nextItem++}`,
      summary_text: text.split("\n"),
      raw_content: [],
    };
    return [...this.#calls.item(item), { type: "agent_reasoning", text }];
  }

  #tokenCount(): CodexMessage[] {
    if (!this.#hasNewUsage) return [];
    this.#hasNewUsage = false;
    const { total, last } = this.#usage;
    const info = {
      total_token_usage: wireUsage(total),
      last_token_usage: wireUsage(last),
      model_context_window: this.#facts.windowTokens(),
    };
    return [{ type: "token_count", info, rate_limits: null }];
  }

  #completed(): CodexMessage {
    const { lastMessage, startedAt, firstTokenAt } = this.#turn;
    return {
      type: "task_complete",
      turn_id: this.#turn.id,
      last_agent_message: lastMessage,
      ...this.#duration(),
      time_to_first_token_ms: firstTokenAt === null ? null : firstTokenAt.getTime() - startedAt.getTime(),
    };
  }

  #aborted(): CodexMessage {
    return {
      type: "turn_aborted",
      turn_id: this.#turn.id,
      reason: "interrupted",
      ...this.#duration(),
    };
  }

  #duration() {
    const { startedAt } = this.#turn;
    const now = this.#facts.now();
    return {
      started_at: seconds(startedAt),
      completed_at: seconds(now),
      duration_ms: now.getTime() - startedAt.getTime(),
    };
  }
}

const errorKinds: Partial<Record<ErrorCode, string>> = {
  "model.auth": "unauthorized",
  "model.context-window": "context_window_exceeded",
  "model.quota": "usage_limit_exceeded",
};

/** Codex sends the message alone; brig adds a code for programs and a hint for people. */
function errorMessage({ message, code, hint }: BrigError): CodexMessage {
  return { type: "error", message, codex_error_info: errorKinds[code] ?? "other", code, hint };
}

function messageItem(id: string, text: string) {
  return { type: "AgentMessage", id, content: [{ type: "Text", text }] };
}

function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

function wireUsage(usage: TokenUsage) {
  return {
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_input_tokens: usage.cacheWriteInputTokens ?? 0,
    output_tokens: usage.outputTokens,
    reasoning_output_tokens: usage.reasoningOutputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}
