import { randomUUID } from "node:crypto";
import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";
import type { AgentEvent, CallEvent, CallSoFar, SessionReceipt } from "../../../agent/index.js";
import { CallsSoFar } from "../../../agent/index.js";
import { NeutralText } from "../../../lib/terminal/terminal.js";
import { formatDuration } from "../../../lib/time/durations.js";
import type { PlanStep } from "../../../tools/index.js";
import { commandForPeople } from "../../../tools/index.js";
import type { ClientFeatures } from "../client-link.js";
import { CommandOutputs } from "./command-output.js";
import { changeLocations, diffContent, patchContent, textContent } from "./file-diffs.js";
import { noticeUpdate } from "./notice.js";
import { fenced, longText, titleText } from "./shown-text.js";
import { toolCallOf } from "./tool-call.js";

/** A longer piece of a message is sent as several updates. */
const PIECE_CHARS = 256 * 1024;

/** Calls of these tools are not shown as calls: the editor shows a plan as a plan. */
const unshown: ReadonlySet<string> = new Set(["update_plan"]);

interface EventUpdatesOptions {
  features: ClientFeatures;
  /** Absolute path that relative ones start from. */
  cwd: string;
  send(update: SessionUpdate): void;
}

/** Translates the events of a session into updates. Close it to stop its timer. */
export class EventUpdates {
  readonly #options: EventUpdatesOptions;
  readonly #outputs: CommandOutputs;
  readonly #calls = new CallsSoFar(() => null);
  #message = new NeutralText({ keepsInvisible: true });
  /** Whether a part of the current message has been sent. */
  #hasPart = false;
  /** Whether the last update was a part of a message. */
  #isAfterMessage = false;
  #compactionId = "";
  /** The call by which the editor is shown the set-up, which no model has made. Null while no set-up runs. */
  #setupId: string | null = null;

  constructor(options: EventUpdatesOptions) {
    this.#options = options;
    this.#outputs = new CommandOutputs({ ...options, usesTerminals: options.features.showsTerminalOutput });
  }

  close(): void {
    this.#outputs.close();
  }

  take(event: AgentEvent): void {
    if ("callId" in event) {
      this.#takeCall(event);
      return;
    }
    switch (event.kind) {
      case "text-delta":
        this.#say(event.text);
        break;
      case "message":
        // An endpoint that does not stream sends the whole message at once.
        if (!this.#hasPart) this.#say(event.text);
        this.#endMessage();
        break;
      case "reasoning":
        this.#think(event.text);
        break;
      case "reconnecting":
        this.#endMessage();
        this.#notice(
          `reconnecting in ${formatDuration(event.delayMs)} (${event.attempt}/${event.maxAttempts})`,
          event.reason,
        );
        break;
      case "warning":
        this.#notice("a warning of brig", event.message);
        break;
      case "receipt":
        for (const [title, text] of receiptNotices(event.receipt)) this.#notice(title, text);
        break;
      case "setup-started":
        this.#startSetup(event);
        break;
      case "setup-output":
        if (this.#setupId !== null) this.#outputs.push(this.#setupId, event.chunk);
        break;
      case "setup-ended":
        this.#endSetup(event);
        break;
      case "web-searched":
        this.#send({
          sessionUpdate: "tool_call",
          toolCallId: randomUUID(),
          title: titleText(`Search the web for ${event.query}`),
          kind: "fetch",
          status: "completed",
        });
        break;
      case "compaction-started":
      case "compacted":
        this.#compact(event);
        break;
      case "turn-started":
        this.#endMessage();
        this.#isAfterMessage = false;
        break;
      case "turn-completed":
        this.#endMessage();
        break;
      case "turn-failed":
      case "turn-interrupted":
        this.#endMessage();
        this.#endOpenCalls();
        break;
      case "mcp-servers-starting":
        this.#notice("waiting for MCP servers", event.servers.join(", "));
        break;
      case "session-started":
      case "sandbox-ready":
      case "request-started":
      case "request-ended":
      case "egress":
      case "agent-started":
      case "agent-state":
      case "agent-event":
        break;
      default:
        event satisfies never;
    }
  }

  /**
   * The client sees a question in the request that asks it, and the arguments and the output of an MCP server's tool
   * in the updates about that call.
   */
  #takeCall(event: CallEvent): void {
    const { callId } = event;
    const { call } = this.#calls.take(event);
    switch (event.kind) {
      case "call-started":
        if (unshown.has(event.name)) return;
        this.#endMessage();
        this.#send({ sessionUpdate: "tool_call", ...toolCallOf(event, this.#options.cwd) });
        break;
      case "command-started":
        this.#startCommand(event);
        break;
      case "command-output":
        this.#outputs.push(callId, event.chunk);
        break;
      case "command-ended":
        this.#endCommand(event);
        break;
      case "command-declined":
        this.#update(callId, { content: [textContent(longText(event.reason))] });
        break;
      case "patch-started":
        this.#update(callId, {
          kind: "edit",
          status: "in_progress",
          locations: changeLocations(event.changes),
          content: patchContent(event.patch),
        });
        break;
      case "patch-ended":
        this.#update(callId, { content: diffContent(event.diffs ?? []) });
        break;
      case "plan-updated":
        this.#send(planUpdate(event.steps));
        break;
      case "call-ended":
        if (isShown(call)) this.#endCall(call, event);
        break;
      default:
    }
  }

  #startCommand({ callId, argv, cwd }: CallEvent & { kind: "command-started" }): void {
    this.#update(callId, {
      title: titleText(commandForPeople(argv)),
      status: "in_progress",
      ...this.#startOutput(callId, cwd),
    });
  }

  #endCommand({ callId, exitCode }: CallEvent & { kind: "command-ended" }): void {
    this.#outputs.end(callId);
    const end = this.#terminalEnd(callId, exitCode);
    if (end !== null) this.#update(callId, end);
  }

  #startSetup({ argv, network }: AgentEvent & { kind: "setup-started" }): void {
    this.#failSetup();
    const id = `setup-${randomUUID()}`;
    this.#setupId = id;
    this.#send({
      sessionUpdate: "tool_call",
      toolCallId: id,
      title: titleText(`Set up: ${commandForPeople(argv)}`),
      kind: "execute",
      status: "in_progress",
      rawInput: { command: longText(commandForPeople(argv)), network },
      ...this.#startOutput(id, this.#options.cwd),
    });
  }

  #endSetup({ exitCode, output }: Pick<AgentEvent & { kind: "setup-ended" }, "exitCode" | "output">): void {
    const id = this.#setupId;
    if (id === null) return;
    this.#setupId = null;
    this.#outputs.end(id);
    const end = this.#terminalEnd(id, exitCode);
    this.#update(id, {
      status: exitCode === 0 ? "completed" : "failed",
      ...(end !== null || output === null ? {} : { content: [outputContent(output)] }),
      ...(exitCode === null ? {} : { rawOutput: { exit_code: exitCode } }),
      ...end,
    });
  }

  /** A set-up that still runs has failed, as far as its turn is concerned. */
  #failSetup(): void {
    this.#endSetup({ exitCode: null, output: null });
  }

  /** Begins to collect the output of a call. Returns the fields of the call by which an editor draws it as a terminal. */
  #startOutput(callId: string, cwd: string) {
    this.#outputs.start(callId);
    if (!this.#options.features.showsTerminalOutput) return {};
    return {
      content: [{ type: "terminal" as const, terminalId: callId }],
      _meta: { terminal_info: { terminal_id: callId, cwd } },
    };
  }

  /** Null for an editor that draws no terminals. */
  #terminalEnd(callId: string, exitCode: number | null) {
    if (!this.#options.features.showsTerminalOutput) return null;
    return { _meta: { terminal_exit: { terminal_id: callId, exit_code: exitCode, signal: null } } };
  }

  #endCall({ callId, parts: { command, patch } }: CallSoFar<null>, end: CallEvent & { kind: "call-ended" }) {
    const exitCode = command?.end?.exitCode ?? null;
    const hasFailed = !end.success || (exitCode !== null && exitCode !== 0);
    const own = patch?.end
      ? diffContent(patch.end.diffs ?? [])
      : command?.end && [outputContent(command.end.output)];
    // A patch that failed half way shows the changes that were made, and why it failed.
    const saysWhy = !own || (!end.success && command === undefined);
    const content = [...(own ?? []), ...(saysWhy ? [outputContent(end.content)] : [])];
    const staysInTerminal = command !== undefined && this.#options.features.showsTerminalOutput;
    this.#update(callId, {
      status: hasFailed ? "failed" : "completed",
      ...(staysInTerminal ? {} : { content }),
      ...(exitCode === null ? {} : { rawOutput: { exit_code: exitCode } }),
    });
  }

  /** Marks the calls that were running when the turn failed or was interrupted as failed. */
  #endOpenCalls(): void {
    this.#failSetup();
    for (const call of this.#calls.known) {
      if (call.end !== null) continue;
      this.#calls.forget(call);
      if (!isShown(call)) continue;
      this.#outputs.end(call.callId);
      this.#update(call.callId, { status: "failed" });
    }
  }

  #say(text: string): void {
    for (let at = 0; at < text.length; at += PIECE_CHARS) this.#sayPiece(text.slice(at, at + PIECE_CHARS));
  }

  #sayPiece(text: string): void {
    const gap = this.#isAfterMessage && !this.#hasPart ? "\n\n" : "";
    const shown = gap + this.#message.push(text);
    if (shown === "") return;
    this.#send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: shown } });
    this.#hasPart = true;
    this.#isAfterMessage = true;
  }

  #endMessage(): void {
    this.#message = new NeutralText({ keepsInvisible: true });
    this.#hasPart = false;
  }

  #think(text: string): void {
    if (text.trim() === "") return;
    this.#send({
      sessionUpdate: "agent_thought_chunk",
      content: { type: "text", text: `${longText(text)}\n\n` },
    });
  }

  #notice(title: string, description: string): void {
    this.#send(noticeUpdate({ title, description }, this.#options.features));
  }

  #compact(event: AgentEvent & { kind: "compaction-started" | "compacted" }): void {
    const isOver = event.kind === "compacted";
    if (!isOver) this.#compactionId = randomUUID();
    if (this.#options.features.showsCompactions)
      this.#send({
        sessionUpdate: "compaction_update",
        compactionId: this.#compactionId,
        status: isOver ? "completed" : "in_progress",
      });
    else if (isOver)
      this.#notice(
        "the conversation so far was summarised",
        `about ${event.tokensBefore} tokens became ${event.tokensAfter}`,
      );
  }

  #update(callId: string, changes: Omit<CallUpdate, "sessionUpdate" | "toolCallId">): void {
    this.#send({ sessionUpdate: "tool_call_update", toolCallId: callId, ...changes });
  }

  #send(update: SessionUpdate): void {
    if (update.sessionUpdate !== "agent_message_chunk") this.#isAfterMessage = false;
    this.#options.send(update);
  }
}

type CallUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>;

/** The editor does not show a call whose start it was not told of. */
function isShown({ start }: CallSoFar<null>): boolean {
  return start !== null && !unshown.has(start.name);
}

export function outputContent(text: string): ToolCallContent {
  return textContent(fenced(longText(text)));
}

const MAX_PLAN_STEPS = 200;

function planUpdate(steps: readonly PlanStep[]): SessionUpdate {
  const entries = steps
    .slice(0, MAX_PLAN_STEPS)
    .map(({ step, status }) => ({ content: titleText(step), priority: "medium" as const, status }));
  return { sessionUpdate: "plan", entries };
}

/** Titles and texts that tell the user of an editor what a session left on the host. */
function receiptNotices({ branch, findings, omitted, incomplete }: SessionReceipt): [string, string][] {
  const notices: [string, string][] = [];
  if (branch?.kind === "arrived") notices.push(["new commits have arrived", `see git log ${branch.branch}`]);
  if (branch?.kind === "failed") notices.push(["the new commits have not arrived", branch.message]);
  if (findings.length > 0 || omitted > 0 || incomplete !== null)
    notices.push(["the session has left files that may run by themselves", "see brig sessions show"]);
  return notices;
}
