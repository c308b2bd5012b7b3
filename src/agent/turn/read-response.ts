import type { BrigError } from "../../errors.js";
import type { CallOutcome, ToolActivity, ToolCall, ToolRegistry } from "../../tools/index.js";
import { AGENT_NAMESPACE, CallScheduler } from "../../tools/index.js";
import type { AgentSandbox } from "../agent-sandbox.js";
import { isContextOverflow } from "../compaction/compaction-request.js";
import { isIncomplete } from "../model/endpoint/model-failure.js";
import { calledTool, isToolCall, type ToolCallItem, textMessage } from "../model/items.js";
import type { BrokenResponse, ModelClient, ModelRequest } from "../model/model-client.js";
import type { RestorePoints } from "../restore-points/restore-points.js";
import { approvalRecord, callRecord } from "../session/write/session-records.js";
import type { Transcript } from "./transcript.js";

export interface ResponseContext {
  model: ModelClient;
  tools: ToolRegistry;
  sandboxReady: Promise<AgentSandbox>;
  restorePoints: RestorePoints;
  transcript: Transcript;
  /** Ends the request and every call. */
  stop: AbortController;
  /** Aborted by `stop` or from outside. */
  signal: AbortSignal;
}

export type ResponseEnd =
  | { kind: "completed"; callCount: number }
  | BrokenResponse
  /** The conversation is longer than the model's context window. */
  | { kind: "overflow"; error: BrigError }
  /** The endpoint stopped in the middle. What was complete is recorded, and its calls have run. */
  | { kind: "incomplete"; error: BrigError };

interface StartedCall {
  item: ToolCallItem;
  /** Null for a call that ended with the whole turn. Never rejects. */
  outcome: Promise<CallOutcome | null>;
}

/**
 * Reads one response. Each complete item is recorded and each call started while the response goes on.
 * Outputs are recorded in the order of the calls, and every recorded call gets one, even after an error. The
 * request does not wait for the restore points of the response before, but its items do, which may be calls.
 */
export async function readResponse(request: ModelRequest, context: ResponseContext): Promise<ResponseEnd> {
  const { model, transcript, restorePoints, signal, stop } = context;
  const calls = new ResponseCalls(context);
  let end: ResponseEnd | undefined;
  try {
    for await (const event of model.stream(request, signal)) {
      if (event.kind === "text-delta") transcript.emit(event);
      if (event.kind === "item") {
        await restorePoints.settled;
        transcript.recordItem(event.item);
        if (isToolCall(event.item)) calls.start(event.item);
      }
      if (event.kind === "completed") {
        if (event.usage !== null) transcript.addUsage(event.usage);
        end = { kind: "completed", callCount: calls.count };
      }
      if (event.kind === "broken") end = event;
    }
  } catch (error) {
    end = endOf(error, transcript);
    if (end === undefined) {
      stop.abort(error);
      throw error;
    }
  } finally {
    await calls.recordOutputs();
  }
  signal.throwIfAborted();
  if (end === undefined) throw new TypeError("a model's stream ends with completed or broken");
  return end;
}

/** Undefined for an error that ends the turn at once, with its calls. */
function endOf(error: unknown, transcript: Transcript): ResponseEnd | undefined {
  if (isContextOverflow(error)) return { kind: "overflow", error };
  if (!isIncomplete(error)) return undefined;
  if (error.cause.usage !== null) transcript.addUsage(error.cause.usage);
  return { kind: "incomplete", error };
}

class ResponseCalls {
  readonly #context: ResponseContext;
  readonly #scheduler: CallScheduler;
  readonly #started: StartedCall[] = [];
  readonly #advice: string[] = [];

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#scheduler = new CallScheduler(context.tools, {
      signal: context.signal,
      ready: context.sandboxReady,
      afterChange: ({ callId }) =>
        context.restorePoints.take(callId, { sandbox: context.sandboxReady, signal: context.signal }),
      onActivity: ({ callId }, activity) => {
        this.#follow(callId, activity);
      },
    });
  }

  get count(): number {
    return this.#started.length;
  }

  start(item: ToolCallItem): void {
    const call = toolCall(item);
    const { callId, name, input } = call;
    this.#context.transcript.emit({ kind: "call-started", callId, name, input });
    this.#started.push({ item, outcome: this.#finish(call) });
  }

  async recordOutputs(): Promise<void> {
    const { transcript, restorePoints } = this.#context;
    for (const { item, outcome } of this.#started) transcript.recordOutput(item, await outcome);
    // In the record a restore point belongs to the response, which ends with the next message.
    if (this.#advice.length > 0) await restorePoints.settled;
    for (const text of this.#advice) transcript.recordItem(textMessage("user", text));
  }

  async #finish(call: ToolCall): Promise<CallOutcome | null> {
    const { transcript, stop } = this.#context;
    const { callId, name } = call;
    try {
      const outcome = await this.#scheduler.run(call);
      const { command: _, ...ended } = outcome;
      transcript.emit({ kind: "call-ended", callId, name, ...ended });
      transcript.keep(callRecord(call, outcome));
      return outcome;
    } catch (error) {
      stop.abort(error);
      return null;
    }
  }

  #follow(callId: string, activity: ToolActivity): void {
    const { transcript } = this.#context;
    if (activity.kind === "advice") {
      this.#advice.push(activity.text);
      transcript.emit({ kind: "warning", message: activity.text });
      return;
    }
    if (activity.kind === "approval-requested" || activity.kind === "approval-answered")
      transcript.keep(approvalRecord(callId, activity));
    transcript.emit({ ...activity, callId });
  }
}

function toolCall(item: ToolCallItem): ToolCall {
  const kind = item.type === "custom_tool_call" ? "custom" : "function";
  const { name, input } = calledTool(item);
  const namespace = item.type === "function_call" ? item.namespace : undefined;
  // brig has one namespace, and knows its tools without it, too.
  const isOwn = namespace === undefined || namespace === AGENT_NAMESPACE;
  return { callId: item.call_id, kind, name: isOwn ? name : `${namespace}.${name}`, input };
}
