import type { AgentSandbox } from "../agent-sandbox.js";

/**
 * A session's second container, with full access, for what a person approved to leave the first one. It
 * starts when it is first needed. If it could not start, the next request opens another one.
 */
export class EscalatedSandbox {
  readonly #open: () => Promise<AgentSandbox>;
  readonly #onStart: (sandbox: AgentSandbox, startMs: number) => void;
  #current: Promise<AgentSandbox> | null = null;

  constructor(open: () => Promise<AgentSandbox>, onStart: (sandbox: AgentSandbox, startMs: number) => void) {
    this.#open = open;
    this.#onStart = onStart;
  }

  readonly get = async (): Promise<AgentSandbox> => {
    this.#current ??= this.#start();
    return await this.#current;
  };

  /**
   * Closes the container, if one was opened, and resolves to its receipt. A later request opens another one.
   */
  async close(): Promise<unknown> {
    const current = this.#current;
    this.#current = null;
    const sandbox = await current?.catch(() => null);
    return await sandbox?.close();
  }

  async #start(): Promise<AgentSandbox> {
    const startedAt = performance.now();
    try {
      const sandbox = await this.#open();
      this.#onStart(sandbox, performance.now() - startedAt);
      return sandbox;
    } catch (error) {
      this.#current = null;
      throw error;
    }
  }
}
