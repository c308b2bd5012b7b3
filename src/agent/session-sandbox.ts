import type { ToolRegistry } from "../tools/index.js";
import type { AgentSandbox, SandboxSource } from "./agent-sandbox.js";
import type { SessionServers } from "./session-servers.js";

/** A sandbox that has started; `readyAt` is in milliseconds since 1970. */
export interface SandboxStart {
  sandbox: AgentSandbox;
  startMs: number;
  readyAt: number;
}

/**
 * The sandbox that a session works in, which may still be starting, and the tools and MCP servers that work
 * with it.
 */
export class SessionSandbox {
  readonly source: SandboxSource;
  readonly ready: Promise<AgentSandbox>;
  /** Null without MCP servers. */
  readonly servers: SessionServers | null;
  readonly tools: ToolRegistry;
  started: SandboxStart | null = null;
  /** Whether the sandbox could not start, or has died. */
  isLost = false;
  #closing: Promise<unknown> | null = null;

  constructor(
    source: SandboxSource,
    options: {
      openServers: (ready: Promise<AgentSandbox>) => SessionServers | null;
      openTools: (ready: Promise<AgentSandbox>, servers: SessionServers | null) => ToolRegistry;
      onStart: (start: SandboxStart) => void;
      onFailure: (error: unknown) => void;
    },
  ) {
    const startedAt = performance.now();
    this.source = source;
    // `then` calls the function only after the constructor has returned; `openConversation` relies on that.
    this.ready = typeof source === "function" ? Promise.resolve().then(source) : Promise.resolve(source);
    this.ready.then(
      (sandbox) => {
        if (this.#closing !== null) return;
        this.started = { sandbox, startMs: performance.now() - startedAt, readyAt: Date.now() };
        options.onStart(this.started);
      },
      (error: unknown) => {
        this.isLost = true;
        options.onFailure(error);
      },
    );
    this.servers = options.openServers(this.ready);
    this.tools = options.openTools(this.ready, this.servers);
  }

  /**
   * Closes the tools and the MCP servers, and the sandbox if `source` is a function, even while it is
   * starting. Resolves to what the sandbox's `close` resolves to, and to null if it was closed before.
   */
  async close(): Promise<unknown> {
    if (this.#closing === null) {
      this.#closing = this.#close();
      return await this.#closing;
    }
    await this.#closing;
    return null;
  }

  async #close(): Promise<unknown> {
    // The servers end before the sandbox, so that its receipt also lists what a server left behind.
    const ended = await Promise.allSettled([this.tools.close(), this.servers?.servers.close()]);
    const sandbox = typeof this.source === "function" ? await this.ready.catch(() => null) : null;
    const receipt = sandbox === null ? null : await sandbox.close();
    // The sandbox is closed even if closing the servers fails.
    const failed = ended.find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
    return receipt;
  }
}
