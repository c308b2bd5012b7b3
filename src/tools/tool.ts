import type { OutputPart } from "../output/output-part.js";
import type { SandboxDenial } from "../policy/sandbox-denial.js";
import type { ActionToReview, FileChange, SandboxPlace } from "./review/action.js";
import type { ResourceUsage } from "./tool-sandbox.js";

/** One tool of the registry. `Arguments` is what a program gives it; what a model sends is checked when it comes. */
export interface Tool<Output extends ToolOutput = ToolOutput, Arguments = unknown> {
  readonly name: string;
  readonly description: string;
  /** What the model is told about it. */
  readonly spec: ToolSpec;
  /** May run beside other calls of the same turn that may too. */
  readonly supportsParallel: boolean;
  /** Takes one text, `input`, so that a model may also send the text itself instead of JSON. Default: false. */
  readonly isFreeform?: boolean;
  /**
   * Absolute paths of the files that a call would change, null where that cannot be told. A tool that has this and supports
   * parallel calls runs beside calls of its kind that change other files, and alone otherwise.
   */
  changedFiles?(args: unknown): readonly string[] | null;
  /**
   * What a call works on, null where it is nothing in particular. Calls with the same answer run one after the other, in their order,
   * though the tool supports parallel calls.
   */
  orderedBy?(args: unknown): string | null;
  /**
   * Runs the tool. What a command does, a timeout included, is in the content; arguments that do not fit are
   * `tool.invalid-input`, and a sandbox that no longer answers is thrown as it is.
   */
  execute(args: Arguments, call?: ToolCallOptions): Promise<Output>;
}

/** What the model reads. `success` is for callers and never sent to it. */
export interface ToolOutput {
  content: string;
  success: boolean;
  /** What the model is given instead of `content`, for an output with pictures; `content` then describes them in words. */
  parts?: readonly OutputPart[];
}

/** Who calls, and who is told of what happens. */
export interface ToolCallOptions {
  /** Which call of a model's this is done for. Absent where a program calls. */
  origin?: CallOrigin | undefined;
  /** Aborting kills what the call started, then rejects with the reason. */
  signal?: AbortSignal | undefined;
  /** Told what happens while the call runs, and after it for a process that outlives it. Must not throw. */
  onActivity?: ((activity: ToolActivity) => void) | undefined;
}

/** Which call of a model's response this is. */
export interface CallOrigin {
  callId: string;
  /** Counts the calls of one response, so that what several of them ask can be put in their order. */
  position: number;
}

/** What a tool does, for a person or a record to follow; the model reads only the output. */
export type ToolActivity =
  | { kind: "command-started"; argv: readonly string[]; cwd: string }
  | { kind: "command-output"; chunk: Uint8Array }
  | { kind: "command-ended"; exitCode: number; output: string; durationMs: number; usage: ResourceUsage }
  /** It does not start; `reason` is what the model is told. */
  | { kind: "command-declined"; argv: readonly string[]; cwd: string; reason: string }
  /** A person is asked now. `approval-answered` follows. */
  | ({ kind: "approval-requested" } & ApprovalQuestion)
  | ({ kind: "approval-answered"; answer: AnsweredApproval; waitedMs: number } & ApprovalQuestion)
  /** `patch` is its text, as the model wrote it. */
  | { kind: "patch-started"; changes: readonly FileChange[]; patch: string }
  | { kind: "patch-ended"; changes: readonly FileChange[]; success: boolean }
  | { kind: "plan-updated"; explanation: string | null; steps: readonly PlanStep[] }
  /** Something the model should be told besides the output. */
  | { kind: "advice"; text: string };

/** What a person is asked. Everything but `reason` and `prefix` is a model's words, or a command's. */
export interface ApprovalQuestion {
  action: ActionToReview;
  /** Where it runs once approved. */
  place: SandboxPlace;
  /** Why brig asks, e.g. `command failed; retry without sandbox?`; null where the policy asks about everything of the kind. */
  reason: string | null;
  /** What the sandbox refused to a first attempt; null before one. */
  denial: SandboxDenial | null;
  /** The beginning of commands that can be approved for the session; null where none is offered. */
  prefix: readonly string[] | null;
}

/** What came of a question; `withdrawn` where the call was ended before an answer came. */
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

/** How a tool is declared to the Responses API. */
export type ToolSpec = FunctionToolSpec | CustomToolSpec | LocalShellSpec | WebSearchSpec;

/** A tool that takes JSON. */
export interface FunctionToolSpec {
  type: "function";
  name: string;
  description: string;
  strict: boolean;
  parameters: JsonSchema;
}

/** A tool that takes text of a grammar instead of JSON. */
export interface CustomToolSpec {
  type: "custom";
  name: string;
  description: string;
  format: { type: "grammar"; syntax: "lark"; definition: string };
}

/** A tool that models of one family know without being told. */
export interface LocalShellSpec {
  type: "local_shell";
}

/** A tool that the model's provider runs. */
export interface WebSearchSpec {
  type: "web_search";
  /** Whether pages are fetched, instead of read from the provider's own store. */
  external_web_access: boolean;
}

/** The part of JSON Schema that describes the arguments of tools. */
export interface JsonSchema {
  type?: string | readonly string[];
  description?: string;
  enum?: readonly unknown[];
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
  items?: JsonSchema;
  additionalProperties?: boolean | JsonSchema;
}
