import { isBrigError } from "../errors.js";
import { AnySignal } from "../lib/time/any-signal.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import { parseArguments } from "./define-tool.js";
import { overlap } from "./patch/path-locks.js";
import {
  failure,
  failureOutput,
  type Tool,
  type ToolActivity,
  type ToolCallOptions,
  type ToolOutput,
} from "./tool.js";

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

/** The tools that can be called, such as those of a `ToolRegistry`. */
export interface CallableTools {
  has(name: string): boolean;
  get(name: string): Tool;
  /** The answer to a model that calls a tool which is off; null for a tool that it may call. */
  refusalOf(name: string): string | null;
}

export interface CallSchedulerOptions {
  /** Aborting ends every call; each still gets an output that says so, and why, if that is a BrigError. */
  signal: AbortSignal;
  /**
   * Every call waits for this, usually the start of the sandbox, before its duration is measured. If it
   * rejects, every call does. Default: nothing to wait for.
   */
  ready?: Promise<unknown> | undefined;
  /**
   * Called when a call that may have changed files has ended, before the calls that wait for it. Must not reject.
   * Default: nothing.
   */
  afterChange?: ((call: ToolCall) => Promise<void>) | undefined;
  /** Must not throw. */
  onActivity?: ((call: ToolCall, activity: ToolActivity) => void) | undefined;
}

/** Codex reports the wall time of an aborted call for these tools. */
const timedAbortTools: ReadonlySet<string> = new Set([
  "shell",
  "container.exec",
  "local_shell",
  "shell_command",
  "unified_exec",
]);

/**
 * Which other calls a call may run beside. Paths are compared as text; the tool that changes files knows
 * where symbolic links lead.
 */
type Concurrency =
  /** Runs beside other shared calls, but those with the same `order` run one after the other. */
  | { kind: "shared"; order: string | null }
  /** Runs beside calls that change other files. */
  | { kind: "changes-files"; files: readonly string[] }
  | { kind: "exclusive" };

interface RunningCall {
  concurrency: Concurrency;
  ended: Promise<unknown>;
}

/** Runs the calls of one response. A call waits for the earlier calls that it must not run beside. */
export class CallScheduler {
  readonly #tools: CallableTools;
  readonly #options: CallSchedulerOptions;
  readonly #ready: Promise<unknown>;
  readonly #running = new Set<RunningCall>();
  #started = 0;

  constructor(tools: CallableTools, options: CallSchedulerOptions) {
    const { ready = Promise.resolve(), signal } = options;
    this.#tools = tools;
    this.#options = options;
    // After an abort the calls go on, to report it as their output.
    this.#ready = beforeAbort(ready, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    // Every call rejects with this error. If there is no call, it must not become an unhandled rejection.
    this.#ready.catch(() => undefined);
  }

  /**
   * Resolves to the output for the model, whatever went wrong with the call itself. Rejects only when no call
   * can succeed any more, e.g. with `sandbox.gone`. The signal ends only this call.
   */
  run(call: ToolCall, signal?: AbortSignal): Promise<CallOutcome> {
    const concurrency = this.#concurrencyOf(call);
    const position = this.#started++;
    const earlier = [...this.#running].filter((other) => conflict(other.concurrency, concurrency));
    const outcome = Promise.all([this.#ready, ...earlier.map(({ ended }) => ended)]).then(() =>
      this.#execute(call, { position, signal }),
    );
    const running: RunningCall = { concurrency, ended: Promise.resolve() };
    const remove = () => this.#running.delete(running);
    running.ended = outcome.then(() => this.#afterChange(call)).then(remove, remove);
    this.#running.add(running);
    return outcome;
  }

  async #afterChange(call: ToolCall): Promise<void> {
    const mayChange = this.#tools.has(call.name) && this.#tools.get(call.name).changesNoFiles !== true;
    if (mayChange) await this.#options.afterChange?.(call);
  }

  #concurrencyOf(call: ToolCall): Concurrency {
    if (!this.#tools.has(call.name)) return { kind: "shared", order: null };
    const tool = this.#tools.get(call.name);
    if (!tool.supportsParallel) return { kind: "exclusive" };
    const args = argumentsIfValid(call);
    if (tool.changedFiles === undefined) return { kind: "shared", order: tool.orderedBy?.(args) ?? null };
    const files = tool.changedFiles(args);
    return files === null ? { kind: "exclusive" } : { kind: "changes-files", files };
  }

  async #execute(
    call: ToolCall,
    { position, signal: own }: { position: number; signal: AbortSignal | undefined },
  ): Promise<CallOutcome> {
    using ends = new AnySignal([this.#options.signal, own]);
    const { signal } = ends;
    const startedAt = performance.now();
    let waitedMs = 0;
    // The time that a person takes to answer is not part of the call's duration.
    const elapsedMs = () => performance.now() - startedAt - waitedMs;
    const onActivity = (activity: ToolActivity) => {
      if (activity.kind === "approval-answered" || activity.kind === "mcp-question-answered")
        waitedMs += activity.waitedMs;
      this.#options.onActivity?.(call, activity);
    };
    const { callId } = call;
    try {
      const output = await this.#dispatch(call, { onActivity, origin: { callId, position }, signal });
      return { ...output, durationMs: elapsedMs() };
    } catch (error) {
      if (!signal.aborted) return { ...failureOutput(error), durationMs: elapsedMs() };
      const durationMs = elapsedMs();
      return {
        ...failure(abortText(call.name, { reason: signal.reason, elapsedMs: durationMs })),
        durationMs,
      };
    }
  }

  async #dispatch(call: ToolCall, options: ToolCallOptions): Promise<ToolOutput> {
    options.signal?.throwIfAborted();
    const refusal = this.#refusalOf(call);
    if (refusal !== null) return failure(refusal);
    const tool = this.#tools.get(call.name);
    const isBlank = tool.takesBlank === true && call.input.trim() === "";
    return await tool.execute(isBlank ? {} : argumentsOf(call), options);
  }

  #refusalOf({ kind, name }: ToolCall): string | null {
    if (!this.#tools.has(name))
      return kind === "custom" ? `unsupported custom tool call: ${name}` : `unsupported call: ${name}`;
    const refusal = this.#tools.refusalOf(name);
    if (refusal !== null) return refusal;
    const takesText = this.#tools.get(name).isFreeform === true;
    return kind === "custom" && !takesText ? `tool ${name} invoked with incompatible payload` : null;
  }
}

/** The text of a custom call is the `input` parameter of a freeform tool. */
function argumentsOf({ kind, input }: ToolCall): unknown {
  return kind === "custom" ? { input } : parseArguments(input);
}

/** Undefined for arguments that are not JSON, which no tool accepts. */
function argumentsIfValid(call: ToolCall): unknown {
  try {
    return argumentsOf(call);
  } catch (error) {
    if (isBrigError(error, "tool.invalid-input")) return undefined;
    throw error;
  }
}

function conflict(one: Concurrency, other: Concurrency): boolean {
  if (one.kind === "shared" && other.kind === "shared")
    return one.order !== null && one.order === other.order;
  if (one.kind !== "changes-files" || other.kind !== "changes-files") return true;
  return one.files.some((path) => other.files.some((file) => overlap(path, file)));
}

/** A failure, of the sandbox or of the model, is not what a person did: then the text says what failed. */
function abortText(name: string, { reason, elapsedMs }: { reason: unknown; elapsedMs: number }): string {
  const seconds = Math.max(elapsedMs / 1000, 0.1).toFixed(1);
  const failed = isBrigError(reason) && reason.code !== "aborted" ? `: ${reason.message}` : null;
  const aborted = failed === null ? "aborted by user" : "aborted";
  return timedAbortTools.has(name)
    ? `Wall time: ${seconds} seconds\n${aborted}${failed ?? ""}`
    : `${aborted} after ${seconds}s${failed ?? ""}`;
}
