import type { ToolRegistry } from "../tools/registry.js";
import type { AgentSandbox, SandboxSource } from "./agent-sandbox.js";

/** The sandbox that a session works in, which may still be starting, and the tools that work in it. */
export class SessionSandbox {
  readonly source: SandboxSource;
  readonly ready: Promise<AgentSandbox>;
  readonly tools: ToolRegistry;
  started: { sandbox: AgentSandbox; startMs: number } | null = null;
  /** Whether the sandbox could not start, or has died. */
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
    // `then` calls the function only after the constructor has returned; `openConversation` relies on that.
    this.ready = typeof source === "function" ? Promise.resolve().then(source) : Promise.resolve(source);
    this.ready.then(
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
    this.tools = options.openTools(this.ready);
  }

  /**
   * Closes the tools, and the sandbox if `source` is a function, even while it is starting. Resolves to what
   * the sandbox's `close` resolves to.
   */
  async close(): Promise<unknown> {
    this.#isClosed = true;
    await this.tools.close();
    if (typeof this.source !== "function") return null;
    const sandbox = await this.ready.catch(() => null);
    return await sandbox?.close();
  }
}
