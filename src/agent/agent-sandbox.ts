import type { ToolSandbox } from "../tools/tool-sandbox.js";

/** What the agent needs of a sandbox. */
export interface AgentSandbox extends ToolSandbox {
  readonly id: string;
  readonly image?: string;
  /** What the kernel was read back to enforce; kept in the session file as it is. */
  readonly proof?: unknown;
  /** What it gives, if anything, is the receipt of what the session left on the host; kept in the session file as it is. */
  close(): Promise<unknown>;
}

/** A sandbox that is there, one that is coming, or a way to get one, which is then the agent's to close. */
export type SandboxSource = AgentSandbox | Promise<AgentSandbox> | (() => Promise<AgentSandbox>);

export interface StartedSandbox {
  readonly ready: Promise<AgentSandbox>;
  /** Closes the sandbox if it was started here, even while it is still starting. Gives what the sandbox gives. */
  close(): Promise<unknown>;
}

/** Starts at once and waits for nothing. */
export function startSandbox(source: SandboxSource): StartedSandbox {
  const isOurs = typeof source === "function";
  const ready = isOurs ? Promise.resolve().then(source) : Promise.resolve(source);
  // Whoever needs the sandbox gets the failure from `ready`.
  ready.catch(() => undefined);
  return {
    ready,
    async close() {
      if (!isOurs) return null;
      const sandbox = await ready.catch(() => null);
      return await sandbox?.close();
    },
  };
}
