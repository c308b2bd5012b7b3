import { BrigError, isBrigError } from "../errors.js";
import type { CallCause, CommandEnd, OutputPart, ResourceUsage, SandboxDenial } from "../sandbox/index.js";
import type { AgentState } from "./agents/agents.js";
import type { JsonSchema } from "./json-schema.js";
import type { ElicitAnswer, McpProgress, McpResult } from "./mcp/mcp-servers.js";
import type { ActionToReview, FileChange, FileDiff, SandboxPlace } from "./review/action.js";

/** A tool of the registry. `Arguments` types the calls of programs; all arguments are checked at run time. */
export interface Tool<Output extends ToolOutput = ToolOutput, Arguments = unknown> {
  readonly name: string;
  readonly description: string;
  /** The declaration for the model. */
  readonly spec: ToolSpec;
  /** Whether a call may run beside other calls of the same turn whose tools allow it, too. */
  readonly supportsParallel: boolean;
  /** The only parameter is `input`, which a model may also send as plain text. Default: false. */
  readonly isFreeform?: boolean;
  /** Whether a call without any arguments text counts as a call with `{}`. Default: false. */
  readonly takesBlank?: boolean;
  /**
   * The absolute paths of the files that a call would change, null if they are not known. If a tool supports
   * parallel calls and has this, a call runs only beside calls that change other files.
   */
  changedFiles?(args: unknown): readonly string[] | null;
  /** Whether a call never changes a file of the workspace, whatever its arguments are. Default: false. */
  readonly changesNoFiles?: boolean;
  /** Calls with the same result run one after the other, even if the tool supports parallel calls. */
  orderedBy?(args: unknown): string | null;
  /**
   * Runs the tool. Its output says what a command did, including a timeout. Throws `tool.invalid-input` for
   * wrong arguments, and the sandbox's own error if the sandbox no longer answers.
   */
  execute(args: Arguments, call?: ToolCallOptions): Promise<Output>;
}

/** The model reads `content`, or `parts` if there are any. `success` is only for callers. */
export interface ToolOutput {
  content: string;
  success: boolean;
  /** Replaces `content` for the model if there are images; `content` then describes them in words. */
  parts?: readonly OutputPart[];
  /** How the command of the call ended. Absent if the call ran none, or if it still runs. */
  command?: CommandEnd | undefined;
}

/** Options of one call. */
export interface ToolCallOptions {
  /** The model's call that this serves. Absent if a program calls. */
  origin?: CallOrigin | undefined;
  /** Aborting kills what the call started, then rejects with the reason. */
  signal?: AbortSignal | undefined;
  /** Called during the call, and after it while its process still runs. Must not throw. */
  onActivity?: ((activity: ToolActivity) => void) | undefined;
}

/** Identifies a call of a model. */
interface CallOrigin {
  callId: string;
  /** The index of the call in its response, to put the questions of several calls in order. */
  position: number;
}

/** What happens during a call, for display and records. The model reads only the output. */
export type ToolActivity =
  | { kind: "command-started"; argv: readonly string[]; cwd: string }
  | { kind: "command-output"; chunk: Uint8Array }
  | {
      kind: "command-ended";
      exitCode: number;
      output: string;
      /** What is known of why it failed. */
      causes?: readonly CallCause[] | undefined;
      durationMs: number;
      usage: ResourceUsage;
    }
  /** The command does not start; `reason` is the text for the model. */
  | { kind: "command-declined"; argv: readonly string[]; cwd: string; reason: string }
  /** A person is asked. `approval-answered` follows. */
  | ({ kind: "approval-requested" } & ApprovalQuestion)
  | ({ kind: "approval-answered"; answer: AnsweredApproval; waitedMs: number } & ApprovalQuestion)
  /** `patch` is the text that the model wrote. */
  | { kind: "patch-started"; changes: readonly FileChange[]; patch: string }
  /** `changes` and `diffs` have only what was really changed, also if the patch failed. */
  | {
      kind: "patch-ended";
      changes: readonly FileChange[];
      diffs?: readonly FileDiff[] | undefined;
      success: boolean;
    }
  | ({ kind: "mcp-call-started" } & McpCallStart)
  | ({ kind: "mcp-call-progress" } & McpProgress)
  /** The server asks the user something. `mcp-question-answered` follows. */
  | { kind: "mcp-question-asked"; server: string }
  | { kind: "mcp-question-answered"; server: string; action: ElicitAnswer["action"]; waitedMs: number }
  | ({ kind: "mcp-call-ended" } & McpCallEnd)
  /** The call is about other agents. `agent-call-ended` follows. */
  | ({ kind: "agent-call-started" } & AgentCallStart)
  | ({ kind: "agent-call-ended" } & AgentCallEnd)
  | { kind: "plan-updated"; explanation: string | null; steps: readonly PlanStep[] }
  /** A note for the model beside the output. */
  | { kind: "advice"; text: string };

/** A call of an MCP server's tool. All of its texts are untrusted. */
export interface McpCallStart {
  server: string;
  /** The tool as its server calls it. */
  tool: string;
  arguments: Readonly<Record<string, unknown>>;
}

/** How such a call ended. One of `result` and `error` is null. */
export interface McpCallEnd {
  result: McpResult | null;
  /** Why there is no result. */
  error: string | null;
  durationMs: number;
}

/** The tools for agents, by the names that Codex reports. */
export type AgentCallName = "spawn_agent" | "send_input" | "resume_agent" | "wait" | "close_agent";

/** A call about other agents. */
interface AgentCallStart {
  tool: AgentCallName;
  /** The ids of the agents; empty if the call starts one. */
  targets: readonly string[];
  /** What an agent is asked. */
  prompt: string | null;
}

/** How such a call ended. */
interface AgentCallEnd extends AgentCallStart {
  /** By id, also of an agent that the call has started. */
  states: Readonly<Record<string, AgentState>>;
  success: boolean;
}

/** A question to a person. Apart from `reason` and `prefix`, its texts come from the model or a command. */
export interface ApprovalQuestion {
  action: ActionToReview;
  /** Where the action runs if it is approved. */
  place: SandboxPlace;
  /** E.g. `command failed; retry without sandbox?`; null if the policy asks about every such action. */
  reason: string | null;
  /** What the sandbox refused in the first attempt; null before that. */
  denial: SandboxDenial | null;
  /** The command prefix that the person can approve for the session; null if none is offered. */
  prefix: readonly string[] | null;
}

/** The result of a question; `withdrawn` if the call ended before there was an answer. */
export type AnsweredApproval =
  | "approved"
  | "approved_for_session"
  | "approved_prefix"
  | "denied"
  | "abort"
  | "withdrawn";

/** A step of the plan that a model makes for its task. */
export interface PlanStep {
  step: string;
  status: "pending" | "in_progress" | "completed";
}

/** The declaration of a tool in the Responses API. */
export type ToolSpec = FunctionToolSpec | CustomToolSpec | LocalShellSpec | WebSearchSpec | NamespaceToolSpec;

/** A tool that takes JSON. */
export interface FunctionToolSpec {
  type: "function";
  name: string;
  description: string;
  strict: boolean;
  parameters: JsonSchema;
}

/** A tool whose input is text that follows a grammar. */
interface CustomToolSpec {
  type: "custom";
  name: string;
  description: string;
  format: { type: "grammar"; syntax: "lark"; definition: string };
}

/** Several functions that a model knows as a group. Each call of one names the group. */
export interface NamespaceToolSpec {
  type: "namespace";
  name: string;
  description: string;
  tools: readonly FunctionToolSpec[];
}

/** A tool that some models know without a description. */
interface LocalShellSpec {
  type: "local_shell";
}

/** A tool that the model's provider runs. */
interface WebSearchSpec {
  type: "web_search";
  /** Whether pages are fetched live; otherwise they come from the provider's cache. */
  external_web_access: boolean;
}

export function failure(content: string): ToolOutput {
  return { content, success: false };
}

/** An error that the model can react to becomes an output; any other, e.g. `sandbox.gone`, is thrown. */
export function failureOutput(error: unknown): ToolOutput {
  if (isBrigError(error) && /^(?:tool|file|exec)\./.test(error.code)) return failure(error.message);
  throw error;
}

/** Throws `tool.invalid-input` with a message for the model unless the condition is met. */
export function requireInput(isMet: boolean, message: string): void {
  if (!isMet) throw new BrigError(message, { code: "tool.invalid-input" });
}
