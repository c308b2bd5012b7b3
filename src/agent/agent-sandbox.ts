import type { ToolSandbox } from "../tools/tool-sandbox.js";

/** What the agent needs of a sandbox. */
export interface AgentSandbox extends ToolSandbox {
  readonly id: string;
  readonly image?: string;
  /** What the kernel was read back to enforce. The session file records it unchanged. */
  readonly proof?: unknown;
  /** May resolve to a receipt of what the session left on the host, which the session file records. */
  close(): Promise<unknown>;
}

/** A sandbox, one that is starting, or a function that opens one, which the agent then closes. */
export type SandboxSource = AgentSandbox | Promise<AgentSandbox> | (() => Promise<AgentSandbox>);
