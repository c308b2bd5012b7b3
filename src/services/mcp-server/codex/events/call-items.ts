import { pathToFileURL } from "node:url";
import type { AgentEvent } from "../../../../agent/index.js";
import type { ApprovalQuestion } from "../../../../tools/index.js";
import { codexChanges } from "./codex-changes.js";
import type { CodexMessage, ThreadFacts } from "./codex-event.js";
import { parsedCommand } from "./parsed-command.js";

type CallEvent = Extract<
  AgentEvent,
  {
    kind:
      | "call-started"
      | "call-ended"
      | "command-started"
      | "command-output"
      | "command-ended"
      | "approval-requested"
      | "approval-answered"
      | "patch-started"
      | "patch-ended";
  }
>;

interface OpenCommand {
  fields: object;
  startedAt: number;
}

interface OpenPatch {
  changes: Record<string, object>;
  startedAt: number;
  /**
   * Null until the patch has ended. The event about it has the tool's output, so it is sent at the end of the
   * call.
   */
  success: boolean | null;
}

/** Translates the events of tool calls, and builds Codex's events `item_started` and `item_completed`. */
export class CallItems {
  readonly #facts: ThreadFacts;
  readonly #turnId: () => string;
  /** The name of the tool of each call that has not ended, by the call's id. */
  readonly #tools = new Map<string, string>();
  readonly #approved = new Set<string>();
  readonly #commands = new Map<string, OpenCommand>();
  readonly #patches = new Map<string, OpenPatch>();

  constructor({ facts, turnId }: { facts: ThreadFacts; turnId: () => string }) {
    this.#facts = facts;
    this.#turnId = turnId;
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
    const { callId } = event;
    switch (event.kind) {
      case "call-started":
        this.#tools.set(callId, event.name);
        return [];
      case "call-ended":
        this.#tools.delete(callId);
        this.#approved.delete(callId);
        return this.#endPatch(callId, event.content);
      case "command-started":
        return this.#startCommand(event);
      case "command-output": {
        const chunk = Buffer.from(event.chunk).toString("base64");
        return [{ type: "exec_command_output_delta", call_id: callId, stream: "stdout", chunk }];
      }
      case "command-ended":
        return this.#endCommand(event);
      case "approval-requested":
        return [this.#approvalRequest(event)];
      case "approval-answered":
        if (event.answer !== "denied" && event.answer !== "abort") this.#approved.add(callId);
        return [];
      case "patch-started":
        return this.#startPatch(event);
      case "patch-ended": {
        const open = this.#patches.get(callId);
        if (open !== undefined) open.success = event.success;
        return [];
      }
      default:
        return event satisfies never;
    }
  }

  #startCommand({ callId, argv, cwd }: CallEvent & { kind: "command-started" }): CodexMessage[] {
    const startedAt = this.#now();
    const fields = {
      command: [...argv],
      cwd: pathToFileURL(cwd).href,
      parsed_cmd: [parsedCommand(argv)],
      source: this.#tools.get(callId) === "exec_command" ? "unified_exec_startup" : "agent",
    };
    this.#commands.set(callId, { fields, startedAt });
    const item = { type: "CommandExecution", id: callId, ...fields, status: "in_progress" };
    const own = { call_id: callId, turn_id: this.#turnId(), started_at_ms: startedAt };
    return [this.started(item, startedAt), { type: "exec_command_begin", ...own, ...fields }];
  }

  #endCommand(event: CallEvent & { kind: "command-ended" }): CodexMessage[] {
    const { callId, output, exitCode, durationMs } = event;
    const open = this.#commands.get(callId);
    if (open === undefined) return [];
    this.#commands.delete(callId);
    const secs = Math.floor(durationMs / 1000);
    const end = {
      ...open.fields,
      stdout: output,
      stderr: "",
      aggregated_output: output,
      exit_code: exitCode,
      duration: { secs, nanos: Math.round((durationMs - secs * 1000) * 1e6) },
      formatted_output: output,
      status: exitCode === 0 ? "completed" : "failed",
    };
    const own = { call_id: callId, turn_id: this.#turnId(), completed_at_ms: this.#now() };
    return [
      this.completed({ type: "CommandExecution", id: callId, ...end }, open.startedAt),
      { type: "exec_command_end", ...own, ...end },
    ];
  }

  #startPatch(event: CallEvent & { kind: "patch-started" }): CodexMessage[] {
    const { callId } = event;
    const startedAt = this.#now();
    const changes = codexChanges(event, this.#facts.setting().cwd);
    this.#patches.set(callId, { changes, startedAt, success: null });
    const auto_approved = !this.#approved.has(callId);
    return [
      this.started({ type: "FileChange", id: callId, changes, auto_approved }, startedAt),
      { type: "patch_apply_begin", call_id: callId, turn_id: this.#turnId(), auto_approved, changes },
    ];
  }

  #endPatch(callId: string, output: string): CodexMessage[] {
    const open = this.#patches.get(callId);
    if (open === undefined) return [];
    this.#patches.delete(callId);
    const { changes, startedAt } = open;
    const success = open.success === true;
    const status = success ? "completed" : "failed";
    const streams = success ? { stdout: output, stderr: "" } : { stdout: "", stderr: output };
    return [
      this.completed({ type: "FileChange", id: callId, changes, status, ...streams }, startedAt),
      {
        type: "patch_apply_end",
        call_id: callId,
        turn_id: this.#turnId(),
        ...streams,
        success,
        changes,
        status,
      },
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
