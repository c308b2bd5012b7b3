import { BrigError, isBrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import type { ToolCall, ToolOutput, ToolRegistry } from "../../../tools/index.js";
import { CallScheduler, createToolRegistry, failure } from "../../../tools/index.js";
import { MAX_UNANSWERED } from "../served-client.js";
import type { SandboxCount } from "./sandbox-count.js";
import type { ServedSandbox, ToolService } from "./served-sandbox.js";

export interface CallOptions {
  /** Aborting kills what the call has started. */
  signal: AbortSignal;
  /** Called with the output of a command while it runs. */
  onOutput: (chunk: Uint8Array) => void;
}

interface Opened {
  sandbox: ServedSandbox;
  registry: ToolRegistry;
  scheduler: CallScheduler;
  release: () => void;
}

/**
 * The calls in one sandbox, which is opened for the first of them. If it ends by itself, the next call opens
 * another one.
 */
export class SandboxCalls {
  readonly #service: ToolService;
  readonly #count: SandboxCount;
  readonly #closing = new AbortController();
  readonly #running = new Map<string, CallOptions>();
  readonly #leaving = new Set<Promise<void>>();
  #opening: Promise<Opened> | undefined;
  #current: Opened | undefined;
  #calls = 0;
  /** What sandboxes have left on the host. */
  #left = "";

  constructor(service: ToolService, count: SandboxCount) {
    this.#service = service;
    this.#count = count;
  }

  /**
   * Starts the sandbox before the first call. Resolves to null, or to the answer for the client if it cannot
   * start.
   */
  async start(signal: AbortSignal): Promise<ToolOutput | null> {
    try {
      await beforeAbort(this.#opened(), signal);
      return null;
    } catch (error) {
      signal.throwIfAborted();
      return failure(describe(error));
    }
  }

  /** Resolves to the output for the client, whatever goes wrong. Rejects only with the signal's reason. */
  async call(name: string, args: unknown, options: CallOptions): Promise<ToolOutput> {
    if (this.#running.size >= MAX_UNANSWERED)
      return failure(`${MAX_UNANSWERED} calls are running already: wait until one of them has ended`);
    const callId = `${this.#calls++}`;
    const call: ToolCall = { callId, name, kind: "function", input: JSON.stringify(args) };
    this.#running.set(callId, options);
    try {
      const opened = await beforeAbort(this.#opened(), options.signal);
      return await opened.scheduler.run(call, options.signal).catch((error: unknown) => {
        if (isBrigError(error, "sandbox.gone")) this.#leave(opened);
        throw error;
      });
    } catch (error) {
      options.signal.throwIfAborted();
      return failure(describe(error));
    } finally {
      this.#running.delete(callId);
    }
  }

  /**
   * Ends what runs. Resolves when the sandbox is gone, even one that was still starting, to what it left on the host,
   * as text.
   */
  async close(): Promise<string> {
    this.#closing.abort(new BrigError("the sandbox is closing", { code: "aborted" }));
    const opened = await this.#opening?.catch(() => undefined);
    if (opened !== undefined) this.#leave(opened);
    await Promise.all(this.#leaving);
    return this.#left;
  }

  #opened(): Promise<Opened> {
    if (this.#closing.signal.aborted) return Promise.reject(this.#closing.signal.reason);
    if (this.#opening !== undefined) return this.#opening;
    const opening = this.#open();
    this.#opening = opening;
    opening.catch(() => {
      // The next call tries again.
      this.#opening = undefined;
    });
    return opening;
  }

  async #open(): Promise<Opened> {
    const { openSandbox, cwd, gates, allowsLoginShell } = this.#service;
    const { signal } = this.#closing;
    let release: (() => void) | undefined;
    try {
      release = this.#count.take();
      const sandbox = await openSandbox(signal);
      const registry = createToolRegistry(sandbox, { cwd, gates, allowsLoginShell });
      const scheduler = new CallScheduler(registry, {
        signal,
        onActivity: ({ callId }, activity) => {
          if (activity.kind === "command-output") this.#running.get(callId)?.onOutput(activity.chunk);
        },
      });
      this.#current = { sandbox, registry, scheduler, release };
      return this.#current;
    } catch (error) {
      release?.();
      throw error;
    }
  }

  /** Begins to close a sandbox. The next call opens another one. */
  #leave(opened: Opened): void {
    if (this.#current !== opened) return;
    this.#current = undefined;
    this.#opening = undefined;
    const { sandbox, registry, release } = opened;
    const leaving = registry
      .close()
      .then(() => this.#end(sandbox))
      .finally(() => {
        release();
        this.#leaving.delete(leaving);
      });
    this.#leaving.add(leaving);
  }

  async #end(sandbox: ServedSandbox): Promise<void> {
    if (sandbox.close === undefined) return await sandbox[Symbol.asyncDispose]();
    const receipt = await sandbox.close();
    this.#left += this.#service.onReceipt?.(receipt) ?? "";
  }
}

function describe(error: unknown): string {
  if (!isBrigError(error)) return `the call failed: ${error instanceof Error ? error.message : error}`;
  const { message, hint } = error;
  if (error.code === "sandbox.gone")
    return `${message}: its processes and its /tmp are gone; the next call opens another sandbox`;
  return hint === undefined ? message : `${message} (${hint})`;
}
