import type { ToolRegistry } from "../../tools/registry.js";
import {
  type AgentSandbox,
  type SandboxSource,
  type StartedSandbox,
  startSandbox,
} from "../agent-sandbox.js";

/** A sandbox and the tools that work in it. */
export class Workplace {
  readonly source: SandboxSource;
  readonly sandbox: StartedSandbox;
  readonly tools: ToolRegistry;
  /** Null while it starts. */
  started: { sandbox: AgentSandbox; startMs: number } | null = null;
  /** It could not start, or is gone. */
  isLost = false;
  #isClosed = false;

  constructor(
    source: SandboxSource,
    options: {
      openTools: (ready: Promise<AgentSandbox>) => ToolRegistry;
      onStart: (sandbox: AgentSandbox, startMs: number) => void;
      onFailure: (error: unknown) => void;
    },
  ) {
    const startedAt = performance.now();
    this.source = source;
    this.sandbox = startSandbox(source);
    this.tools = options.openTools(this.sandbox.ready);
    this.sandbox.ready.then(
      (sandbox) => {
        if (this.#isClosed) return;
        this.started = { sandbox, startMs: performance.now() - startedAt };
        options.onStart(sandbox, this.started.startMs);
      },
      (error: unknown) => {
        this.isLost = true;
        options.onFailure(error);
      },
    );
  }

  /** Gives what its sandbox gives. */
  async close(): Promise<unknown> {
    this.#isClosed = true;
    await this.tools.close();
    return await this.sandbox.close();
  }
}
