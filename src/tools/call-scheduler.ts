import { BrigError } from "../errors.js";
import { parseArguments } from "./define-tool.js";
import type { ToolRegistry } from "./registry.js";
import type { ToolActivity, ToolOutput } from "./tool.js";

/** A call as a model makes it. */
export interface ToolCall {
  callId: string;
  name: string;
  /** "function" with arguments as JSON, or "custom" with any text. */
  kind: "function" | "custom";
  input: string;
}

export interface CallOutcome extends ToolOutput {
  durationMs: number;
}

export interface CallSchedulerOptions {
  /** Aborting ends every call; each still gets an output that says so. */
  signal: AbortSignal;
  /** What every call waits for before its time counts: the sandbox, as a rule. A failure is the call's. Default: nothing. */
  ready?: Promise<unknown> | undefined;
  /** Must not throw. */
  onActivity?: ((call: ToolCall, activity: ToolActivity) => void) | undefined;
}

/** Tools whose output has always told the wall time. */
const timedAbortTools: ReadonlySet<string> = new Set([
  "shell",
  "container.exec",
  "local_shell",
  "shell_command",
  "unified_exec",
]);

/**
 * Runs the calls of one response. A call starts as soon as it is handed over: beside the others if all their tools support it,
 * else after every call before it, and before every call after it.
 */
export class CallScheduler {
  readonly #tools: ToolRegistry;
  readonly #options: CallSchedulerOptions;
  readonly #ready: Promise<unknown>;
  /** The last call that had to be alone, and those after it that run beside each other. */
  #alone: Promise<unknown> = Promise.resolve();
  #together: Promise<unknown>[] = [];

  constructor(tools: ToolRegistry, options: CallSchedulerOptions) {
    this.#tools = tools;
    this.#options = options;
    this.#ready = Promise.race([options.ready, whenAborted(options.signal)]);
    // Each call gets the failure; where there is none, nobody has to.
    this.#ready.catch(() => undefined);
  }

  /**
   * Resolves to what the model is told, whatever went wrong with the call itself. Rejects only when no call can succeed any
   * more, e.g. with `sandbox.gone`.
   */
  run(call: ToolCall): Promise<CallOutcome> {
    const isParallel = this.#tools.has(call.name) && this.#tools.get(call.name).supportsParallel;
    const before = isParallel ? [this.#alone] : [this.#alone, ...this.#together];
    const outcome = Promise.all([this.#ready, ...before]).then(() => this.#execute(call));
    const over = outcome.catch(() => undefined);
    if (isParallel) {
      this.#together.push(over);
    } else {
      this.#alone = over;
      this.#together = [];
    }
    return outcome;
  }

  async #execute(call: ToolCall): Promise<CallOutcome> {
    const startedAt = performance.now();
    const elapsedMs = () => performance.now() - startedAt;
    try {
      return { ...(await this.#dispatch(call)), durationMs: elapsedMs() };
    } catch (error) {
      const content = this.#options.signal.aborted ? abortText(call.name, elapsedMs()) : failureText(error);
      return { content, success: false, durationMs: elapsedMs() };
    }
  }

  async #dispatch(call: ToolCall): Promise<ToolOutput> {
    const { signal, onActivity } = this.#options;
    signal.throwIfAborted();
    if (call.kind === "custom")
      return {
        content: this.#tools.has(call.name)
          ? `tool ${call.name} invoked with incompatible payload`
          : `unsupported custom tool call: ${call.name}`,
        success: false,
      };
    return await this.#tools.get(call.name).execute(parseArguments(call.input), {
      signal,
      onActivity: (activity) => onActivity?.(call, activity),
    });
  }
}

/** Never resolves without an abort: it is only good for a race. */
function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** What the model is told of an error that is about its call; any other is thrown on. */
function failureText(error: unknown): string {
  if (error instanceof BrigError && /^(?:tool|exec|file)\./.test(error.code)) return error.message;
  throw error;
}

function abortText(name: string, elapsedMs: number): string {
  const seconds = Math.max(elapsedMs / 1000, 0.1).toFixed(1);
  return timedAbortTools.has(name)
    ? `Wall time: ${seconds} seconds\naborted by user`
    : `aborted by user after ${seconds}s`;
}
