import { pathToFileURL } from "node:url";
import type { CallEvent, CallPart } from "../../../../agent/index.js";
import { CallsSoFar } from "../../../../agent/index.js";
import type { ApprovalQuestion, McpCallEnd, McpCallStart } from "../../../../tools/index.js";
import { codexChanges } from "./codex-changes.js";
import type { CodexMessage, ThreadFacts } from "./codex-event.js";
import { parsedCommand } from "./parsed-command.js";

/** Translates the events of tool calls, and builds Codex's events `item_started` and `item_completed`. */
export class CallItems {
  readonly #facts: ThreadFacts;
  readonly #turnId: () => string;
  readonly #calls: CallsSoFar;

  constructor({ facts, turnId }: { facts: ThreadFacts; turnId: () => string }) {
    this.#facts = facts;
    this.#turnId = turnId;
    this.#calls = new CallsSoFar(() => null, { now: () => this.#now() });
  }

  /** The two events of an item that begins and ends at the same time. */
  item(item: object): CodexMessage[] {
    const now = this.#now();
    return [this.started(item, now), this.completed(item, now)];
  }

  started(item: object, startedAt: number): CodexMessage {
    return { type: "item_started", ...this.#place(), item, started_at_ms: startedAt };
  }

  completed(item: object, startedAt: number): CodexMessage {
    const times = { started_at_ms: startedAt, completed_at_ms: this.#now() };
    return { type: "item_completed", ...this.#place(), item, ...times };
  }

  translate(event: CallEvent): CodexMessage[] {
    const { call, part } = this.#calls.take(event);
    const { callId } = event;
    switch (event.kind) {
      case "command-started":
      case "command-ended":
        return part?.kind === "command" ? this.#command(part, call.start?.name) : [];
      case "command-output": {
        const chunk = Buffer.from(event.chunk).toString("base64");
        return [{ type: "exec_command_output_delta", call_id: callId, stream: "stdout", chunk }];
      }
      case "approval-requested":
        return [this.#approvalRequest(event)];
      case "patch-started":
        return part?.kind === "patch" ? this.#startPatch(part, !call.isApproved) : [];
      case "call-ended":
        // The event about the end of a patch has the tool's output.
        return call.parts.patch === undefined ? [] : this.#endPatch(call.parts.patch, event.content);
      case "mcp-call-started":
        return [{ type: "mcp_tool_call_begin", call_id: callId, invocation: invocationOf(event) }];
      case "mcp-call-ended":
        return part?.kind === "mcp-call" ? [mcpCallEnd(part.start, event)] : [];
      case "plan-updated":
        return [{ type: "plan_update", explanation: event.explanation, plan: event.steps }];
      // Codex has no event for a refused command, and the other kinds exist only in brig.
      case "call-started":
      case "command-declined":
      case "approval-answered":
      case "patch-ended":
      case "mcp-call-progress":
      case "mcp-question-asked":
      case "mcp-question-answered":
      case "agent-call-started":
      case "agent-call-ended":
      case "restore-point-created":
        return [];
      default:
        return event satisfies never;
    }
  }

  #command({ start, startedAt, end }: Part<"command">, tool: string | undefined): CodexMessage[] {
    const { callId, argv, cwd } = start;
    const fields = {
      command: [...argv],
      cwd: pathToFileURL(cwd).href,
      parsed_cmd: [parsedCommand(argv)],
      source: tool === "exec_command" ? "unified_exec_startup" : "agent",
    };
    const own = { call_id: callId, turn_id: this.#turnId() };
    if (end === null) {
      const item = { type: "CommandExecution", id: callId, ...fields, status: "in_progress" };
      return [
        this.started(item, startedAt),
        { type: "exec_command_begin", ...own, started_at_ms: startedAt, ...fields },
      ];
    }
    const { output, exitCode, durationMs } = end;
    const ended = {
      ...fields,
      stdout: output,
      stderr: "",
      aggregated_output: output,
      exit_code: exitCode,
      duration: wireDuration(durationMs),
      formatted_output: output,
      status: exitCode === 0 ? "completed" : "failed",
    };
    return [
      this.completed({ type: "CommandExecution", id: callId, ...ended }, startedAt),
      { type: "exec_command_end", ...own, completed_at_ms: this.#now(), ...ended },
    ];
  }

  #startPatch({ start, startedAt }: Part<"patch">, auto_approved: boolean): CodexMessage[] {
    const { callId } = start;
    const changes = codexChanges(start, this.#facts.setting().cwd);
    return [
      this.started({ type: "FileChange", id: callId, changes, auto_approved }, startedAt),
      { type: "patch_apply_begin", call_id: callId, turn_id: this.#turnId(), auto_approved, changes },
    ];
  }

  #endPatch({ start, startedAt, end }: Part<"patch">, output: string): CodexMessage[] {
    const { callId } = start;
    const changes = codexChanges(start, this.#facts.setting().cwd);
    const success = end?.success === true;
    const status = success ? "completed" : "failed";
    const streams = success ? { stdout: output, stderr: "" } : { stdout: "", stderr: output };
    const own = { call_id: callId, turn_id: this.#turnId() };
    return [
      this.completed({ type: "FileChange", id: callId, changes, status, ...streams }, startedAt),
      { type: "patch_apply_end", ...own, ...streams, success, changes, status },
    ];
  }

  #approvalRequest({ callId, action, reason, prefix }: ApprovalQuestion & { callId: string }): CodexMessage {
    const own = { call_id: callId, turn_id: this.#turnId(), started_at_ms: this.#now() };
    if (action.kind === "patch")
      return { type: "apply_patch_approval_request", ...own, changes: codexChanges(action, action.cwd) };
    if (action.kind === "mcp-call")
      return {
        type: "elicitation_request",
        ...own,
        server_name: action.server,
        id: callId,
        message: `Allow the call of ${action.name}?`,
      };
    const proposal =
      prefix === null ? [] : [{ approved_execpolicy_amendment: { proposed_execpolicy_amendment: prefix } }];
    return {
      type: "exec_approval_request",
      kind: "command",
      ...own,
      command: [...action.argv],
      cwd: action.cwd,
      reason: reason ?? action.escalation.justification,
      ...(prefix === null ? {} : { proposed_execpolicy_amendment: prefix }),
      available_decisions: ["approved", ...proposal, "abort"],
      parsed_cmd: [parsedCommand(action.argv)],
    };
  }

  #place() {
    return { thread_id: this.#facts.threadId, turn_id: this.#turnId() };
  }

  #now(): number {
    return this.#facts.now().getTime();
  }
}

type Part<Kind extends CallPart<null>["kind"]> = Extract<CallPart<null>, { kind: Kind }>;

function mcpCallEnd(
  start: McpCallStart & { callId: string },
  { result, error, durationMs }: McpCallEnd,
): CodexMessage {
  const wire =
    result === null
      ? { Err: error ?? "" }
      : {
          Ok: {
            content: result.content,
            structuredContent: result.structuredContent ?? null,
            isError: result.isError,
          },
        };
  return {
    type: "mcp_tool_call_end",
    call_id: start.callId,
    invocation: invocationOf(start),
    duration: wireDuration(durationMs),
    result: wire,
  };
}

function invocationOf({ server, tool, arguments: args }: McpCallStart) {
  return { server, tool, arguments: args };
}

function wireDuration(ms: number): { secs: number; nanos: number } {
  const secs = Math.floor(ms / 1000);
  return { secs, nanos: Math.round((ms - secs * 1000) * 1e6) };
}
