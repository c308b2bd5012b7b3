import type { ResourceUsage } from "./sandbox.js";

/** One tool of the registry. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** What the model is told about it. */
  readonly spec: FunctionToolSpec;
  /** May run beside other calls of the same turn that may too. */
  readonly supportsParallel: boolean;
  /**
   * Runs the tool. What a command does, a timeout included, is in the content; arguments that do not fit are
   * `tool.invalid-input`, and a sandbox that no longer answers is thrown as it is.
   */
  execute(args: unknown, call?: ToolCallOptions): Promise<ToolOutput>;
}

/** What the model reads. `success` is for callers and never sent to it. */
export interface ToolOutput {
  content: string;
  success: boolean;
}

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
  /** Something the model should be told besides the output. */
  | { kind: "advice"; text: string };

/** A function tool as the Responses API takes it. */
export interface FunctionToolSpec {
  type: "function";
  name: string;
  description: string;
  strict: false;
  parameters: JsonSchema;
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
