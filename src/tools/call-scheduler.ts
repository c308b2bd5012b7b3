import { BrigError, isBrigError } from "../errors.js";
import { parseArguments, withPlace } from "./define-tool.js";
import { overlap } from "./patch/path-locks.js";
import type { ToolRegistry } from "./registry.js";
import type { ToolActivity, ToolCallOptions, ToolOutput } from "./tool.js";

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
 * What a call may run beside: others that change no files of their own unless both are ordered by the same thing, changes of other
 * files, or nothing. Two names of one file are two files here: the tool
 * that changes files knows where links lead.
 */
type Claim =
  | { kind: "shares"; order: string | null }
  | { kind: "changes"; files: readonly string[] }
  | { kind: "alone" };

interface RunningCall {
  claim: Claim;
  over: Promise<unknown>;
}

/**
 * Runs the calls of one response. A call starts as soon as it is handed over and every call before it that it must not run beside is
 * over.
 */
export class CallScheduler {
  readonly #tools: ToolRegistry;
  readonly #options: CallSchedulerOptions;
  readonly #ready: Promise<unknown>;
  readonly #running = new Set<RunningCall>();
  #started = 0;

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
    const claim = this.#claimOf(call);
    const position = this.#started++;
    const before = [...this.#running].filter((other) => excludes(other.claim, claim));
    const outcome = Promise.all([this.#ready, ...before.map(({ over }) => over)]).then(() =>
      this.#execute(call, position),
    );
    const running: RunningCall = { claim, over: Promise.resolve() };
    running.over = outcome.then(
      () => this.#running.delete(running),
      () => this.#running.delete(running),
    );
    this.#running.add(running);
    return outcome;
  }

  #claimOf(call: ToolCall): Claim {
    if (!this.#tools.has(call.name)) return { kind: "shares", order: null };
    const tool = this.#tools.get(call.name);
    if (!tool.supportsParallel) return { kind: "alone" };
    if (tool.changedFiles === undefined)
      return { kind: "shares", order: toldOf(call, (args) => tool.orderedBy?.(args) ?? null) };
    const files = toldOf(call, (args) => tool.changedFiles?.(args) ?? null);
    return files === null ? { kind: "alone" } : { kind: "changes", files };
  }

  async #execute(call: ToolCall, position: number): Promise<CallOutcome> {
    const startedAt = performance.now();
    let waitedMs = 0;
    // What a person takes to answer is no time of the call's.
    const elapsedMs = () => performance.now() - startedAt - waitedMs;
    const onActivity = (activity: ToolActivity) => {
      if (activity.kind === "approval-answered") waitedMs += activity.waitedMs;
      this.#options.onActivity?.(call, activity);
    };
    const { callId } = call;
    try {
      const output = await this.#dispatch(call, { onActivity, origin: { callId, position } });
      return { ...output, durationMs: elapsedMs() };
    } catch (error) {
      const content = this.#options.signal.aborted ? abortText(call.name, elapsedMs()) : failureText(error);
      return { content, success: false, durationMs: elapsedMs() };
    }
  }

  async #dispatch(call: ToolCall, options: ToolCallOptions): Promise<ToolOutput> {
    const { signal } = this.#options;
    signal.throwIfAborted();
    const refusal = this.#refusal(call);
    if (refusal !== null) return { content: refusal, success: false };
    const args = argumentsOf(call);
    try {
      return await this.#tools.get(call.name).execute(args, { ...options, signal });
    } catch (error) {
      throw call.kind === "custom" ? error : withPlace(error, call.input);
    }
  }

  /** What the model is told of a call that cannot be made, else null. */
  #refusal({ kind, name }: ToolCall): string | null {
    if (!this.#tools.has(name))
      return kind === "custom" ? `unsupported custom tool call: ${name}` : `unsupported call: ${name}`;
    const off = this.#tools.refusalOf(name);
    if (off !== null) return off;
    const isTakenAsText = this.#tools.get(name).isFreeform === true;
    return kind === "custom" && !isTakenAsText ? `tool ${name} invoked with incompatible payload` : null;
  }
}

/** A custom call's text is the one parameter of a freeform tool. */
function argumentsOf({ kind, input }: ToolCall): unknown {
  return kind === "custom" ? { input } : parseArguments(input);
}

/** What a tool tells of the call's arguments; null for those that are not even JSON. */
function toldOf<Told>(call: ToolCall, tell: (args: unknown) => Told | null): Told | null {
  try {
    return tell(argumentsOf(call));
  } catch (error) {
    if (isBrigError(error, "tool.invalid-input")) return null;
    throw error;
  }
}

function excludes(one: Claim, other: Claim): boolean {
  if (one.kind === "shares" && other.kind === "shares")
    return one.order !== null && one.order === other.order;
  if (one.kind !== "changes" || other.kind !== "changes") return true;
  return one.files.some((path) => other.files.some((file) => overlap(path, file)));
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
