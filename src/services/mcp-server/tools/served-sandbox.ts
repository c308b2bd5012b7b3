import type { ToolGates, ToolSandbox } from "../../../tools/index.js";

/** What the served tools work in. */
export interface ServedSandbox extends ToolSandbox, AsyncDisposable {
  /** Ends it, and resolves to a receipt of what it left on the host. Absent if it can leave nothing there. */
  close?(): Promise<unknown>;
}

/** What the tools need of the program that serves them. */
export interface ToolService {
  /** Aborting ends the start. */
  openSandbox(signal: AbortSignal): Promise<ServedSandbox>;
  /** Called with what `close` of a sandbox resolves to. Returns the same as text for the client, "" for nothing. */
  onReceipt?: ((receipt: unknown) => string) | undefined;
  /** Absolute path inside the sandbox that relative paths start from. */
  cwd: string;
  gates: ToolGates;
  allowsLoginShell?: boolean | undefined;
  /** Whether commands reach the network. */
  hasNetwork: boolean;
  /** Whether commands can change files of the host. */
  canWrite: boolean;
  version: string;
  /** How long a sandbox that a client has named may be unused. Default: 30 minutes. */
  idleMs?: number | undefined;
  /** How many sandboxes are open at once. Default: 16. */
  maxSandboxes?: number | undefined;
}
