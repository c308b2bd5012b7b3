import type { ResourceUsage } from "./sandbox.js";

/** One tool of the registry. */
export interface Tool<Output extends ToolOutput = ToolOutput> {
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
   * Runs the tool. What a command does, a timeout included, is in the content; arguments that do not fit are
   * `tool.invalid-input`, and a sandbox that no longer answers is thrown as it is.
   */
  execute(args: unknown, call?: ToolCallOptions): Promise<Output>;
}

/** What the model reads. `success` is for callers and never sent to it. */
export interface ToolOutput {
  content: string;
  success: boolean;
  /** What the model is given instead of `content`, for an output with pictures; `content` then describes them in words. */
  parts?: readonly OutputPart[];
}

/** A part of an output, as the Responses API takes it. */
export type OutputPart =
  | { type: "input_text"; text: string }
  /** `image_url` is a data URL. */
  | { type: "input_image"; image_url: string; detail?: "high" | "original" | undefined };

export interface ToolCallOptions {
  /** Aborting kills what the call started, then rejects with the reason. */
  signal?: AbortSignal | undefined;
  /** Told what happens while the call runs, and after it for a process that outlives it. Must not throw. */
  onActivity?: ((activity: ToolActivity) => void) | undefined;
}

/** What a tool does, for a person or a record to follow; the model reads only the output. */
export type ToolActivity =
  | { kind: "command-started"; argv: readonly string[]; cwd: string }
  | { kind: "command-output"; chunk: Uint8Array }
  | { kind: "command-ended"; exitCode: number; output: string; durationMs: number; usage: ResourceUsage }
  | { kind: "patch-started"; changes: readonly FileChange[] }
  | { kind: "patch-ended"; changes: readonly FileChange[]; success: boolean }
  | { kind: "plan-updated"; explanation: string | null; steps: readonly PlanStep[] }
  /** Something the model should be told besides the output. */
  | { kind: "advice"; text: string };

/** What a patch does to one file. A file that moves is an update of where it was. */
export interface FileChange {
  path: string;
  kind: "add" | "delete" | "update";
}

export interface PlanStep {
  step: string;
  status: "pending" | "in_progress" | "completed";
}

/** How a tool is declared to the Responses API. */
export type ToolSpec = FunctionToolSpec | CustomToolSpec | LocalShellSpec | WebSearchSpec;

export interface FunctionToolSpec {
  type: "function";
  name: string;
  description: string;
  strict: false;
  parameters: JsonSchema;
}

/** A tool that takes text of a grammar instead of JSON. */
interface CustomToolSpec {
  type: "custom";
  name: string;
  description: string;
  format: { type: "grammar"; syntax: "lark"; definition: string };
}

/** A tool that models of one family know without being told. */
interface LocalShellSpec {
  type: "local_shell";
}

/** A tool that the model's provider runs. */
interface WebSearchSpec {
  type: "web_search";
  /** Whether pages are fetched, instead of read from the provider's own store. */
  external_web_access: boolean;
}

export interface JsonSchema {
  type?: string;
  description?: string;
  enum?: readonly unknown[];
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
  items?: JsonSchema;
  additionalProperties?: boolean | JsonSchema;
}
