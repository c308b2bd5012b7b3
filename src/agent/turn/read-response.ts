import type { BrigError } from "../../errors.js";
import { isToolCall, type ToolCallItem, textMessage } from "../../model/items.js";
import type { BrokenResponse, ModelClient, ModelRequest } from "../../model/model-client.js";
import { approvalRecord, callRecord } from "../../session/write/session-records.js";
import { type CallOutcome, CallScheduler, type ToolCall } from "../../tools/call-scheduler.js";
import type { ToolRegistry } from "../../tools/registry.js";
import type { ToolActivity } from "../../tools/tool.js";
import type { ResourceUsage } from "../../tools/tool-sandbox.js";
import { isContextOverflow } from "../compaction/compaction-request.js";
import type { Transcript } from "./transcript.js";

export interface ResponseContext {
  model: ModelClient;
  tools: ToolRegistry;
  sandboxReady: Promise<unknown>;
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
  | { kind: "overflow"; error: BrigError };

interface StartedCall {
  item: ToolCallItem;
  /** Null for a call that ended with the whole turn. Never rejects. */
  outcome: Promise<CallOutcome | null>;
}

/**
 * Reads one response. Each complete item is recorded and each call started while the response goes on.
 * Outputs are recorded in the order of the calls, and every recorded call gets one, even after an error.
 */
export async function readResponse(request: ModelRequest, context: ResponseContext): Promise<ResponseEnd> {
  const { model, transcript, signal, stop } = context;
  const calls = new ResponseCalls(context);
  let end: ResponseEnd | undefined;
  try {
    for await (const event of model.stream(request, signal)) {
      if (event.kind === "text-delta") transcript.emit(event);
      if (event.kind === "item") {
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
    if (!isContextOverflow(error)) {
      stop.abort(error);
      throw error;
    }
    end = { kind: "overflow", error };
  } finally {
    await calls.recordOutputs();
  }
  signal.throwIfAborted();
  if (end === undefined) throw new TypeError("a model's stream ends with completed or broken");
  return end;
}

class ResponseCalls {
  readonly #context: ResponseContext;
  readonly #scheduler: CallScheduler;
  readonly #started: StartedCall[] = [];
  readonly #commands = new Map<string, { exitCode: number; usage: ResourceUsage }>();
  readonly #advice: string[] = [];

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#scheduler = new CallScheduler(context.tools, {
      signal: context.signal,
      ready: context.sandboxReady,
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
    const { transcript } = this.#context;
    for (const { item, outcome } of this.#started) transcript.recordOutput(item, await outcome);
    for (const text of this.#advice) transcript.recordItem(textMessage("user", text));
  }

  async #finish(call: ToolCall): Promise<CallOutcome | null> {
    const { transcript, stop } = this.#context;
    const { callId, name } = call;
    try {
      const outcome = await this.#scheduler.run(call);
      transcript.emit({ kind: "call-ended", callId, name, ...outcome });
      const { exitCode, usage } = this.#commands.get(callId) ?? {};
      transcript.keep(callRecord({ callId, name, ...outcome, exitCode, usage }));
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
    if (activity.kind === "command-ended") this.#commands.set(callId, activity);
    transcript.emit({ ...activity, callId });
  }
}

function toolCall(item: ToolCallItem): ToolCall {
  const callId = item.call_id;
  if (item.type === "function_call")
    return { callId, name: item.name, kind: "function", input: item.arguments };
  if (item.type === "custom_tool_call") return { callId, name: item.name, kind: "custom", input: item.input };
  const { command, working_directory: workdir, timeout_ms } = item.action;
  const input = JSON.stringify({ command, workdir, timeout_ms });
  return { callId, name: "local_shell", kind: "function", input };
}
