import { type BrigError, isBrigError } from "../errors.js";
import { pause } from "../lib/pause.js";
import { retryDelayMs } from "../model/backoff.js";
import type { ModelClient, TokenUsage } from "../model/model-client.js";
import { profileOf } from "../model/model-profile.js";
import { createToolRegistry, type ToolRegistry, type ToolRegistryOptions } from "../tools/registry.js";
import { mergeGates } from "../tools/tool-gates.js";
import type { TruncationPolicy } from "../tools/truncation.js";
import { readVersion } from "../version.js";
import { type AgentSandbox, type SandboxSource, startSandbox } from "./agent-sandbox.js";
import type { AgentListener } from "./events.js";
import {
  abortedTurnMessage,
  defaultInstructions,
  initialContext,
  type SessionSetting,
  userMessage,
} from "./prompt.js";
import { type ResponseContext, type ResponseEnd, readResponse } from "./read-response.js";
import { noSessionLog, type SessionLog } from "./session-file.js";
import * as records from "./session-records.js";
import { createThreadId } from "./thread-id.js";
import { Transcript } from "./transcript.js";

export interface RunAgentOptions {
  prompt: string;
  /** Pictures for the first message, as data URLs. */
  images?: readonly string[] | undefined;
  model: ModelClient;
  /** Starts while the first request is in flight. A function's sandbox is closed at the end; any other is the caller's. */
  sandbox: SandboxSource;
  /** Where and how the session runs, as the model is told. */
  setting: SessionSetting;
  /** Default: brig's registry, working in the setting's directory. Closed at the end. */
  tools?: ((sandbox: Promise<AgentSandbox>) => ToolRegistry) | undefined;
  /** How much of an output the model is given. Default: what is known of the model. */
  truncation?: TruncationPolicy | undefined;
  /** For brig's registry. */
  toolOptions?: Pick<ToolRegistryOptions, "allowsLoginShell" | "gates" | "user"> | undefined;
  /** Default: brig's own. */
  instructions?: string | undefined;
  /** A JSON Schema that the final message has to follow. */
  outputSchema?: Readonly<Record<string, unknown>> | undefined;
  /** Aborting ends the turn: running calls are ended, and each has its output. */
  signal?: AbortSignal | undefined;
  onEvent?: AgentListener | undefined;
  /** Default: nothing is kept. Closed at the end. */
  session?: SessionLog | undefined;
  /** Default: a new one. */
  threadId?: string | undefined;
  /** Default: the clock. */
  now?: (() => Date) | undefined;
  /** From 0 up to but not including 1, for the delays between retries. Default: Math.random. */
  random?: (() => number) | undefined;
}

export interface AgentResult {
  status: "completed" | "failed" | "interrupted";
  threadId: string;
  /** The last text of the assistant, null where it said nothing. */
  lastMessage: string | null;
  /** Of all requests together. */
  usage: TokenUsage;
  toolCalls: number;
  /** From the start of each call to its output, in the order of the calls. */
  callLatenciesMs: number[];
  /** How long the sandbox took to start; null when it never was ready. */
  sandboxStartMs: number | null;
  sessionFile: string | null;
  /** Why it failed. */
  error?: BrigError;
}

/**
 * Runs one turn: asks the model, runs its tool calls in the sandbox, and asks again with their outputs, until it calls none. What
 * goes wrong with the model, the sandbox or the engine is in the result; only a fault of brig's own is thrown.
 */
export async function runAgent(options: RunAgentOptions): Promise<AgentResult> {
  const run = prepare(options);
  const sandbox = startSandbox(options.sandbox);
  const tools = openTools(options, { run, ready: sandbox.ready });
  const watch = watchStart(sandbox.ready, run);
  try {
    const { model } = options;
    const ending = await takeTurn(options, { ...run, model, tools, sandboxReady: sandbox.ready });
    await tools.close();
    return conclude(run, watch, ending);
  } finally {
    watch.stop();
    await tools.close();
    await sandbox.close();
    options.session?.close();
  }
}

interface Run {
  threadId: string;
  turnId: string;
  transcript: Transcript;
  stop: AbortController;
  signal: AbortSignal;
  now: () => Date;
}

function prepare(options: RunAgentOptions): Run {
  const now = options.now ?? (() => new Date());
  const stop = new AbortController();
  return {
    threadId: options.threadId ?? createThreadId(now()),
    turnId: createThreadId(now()),
    transcript: new Transcript({
      log: options.session ?? noSessionLog,
      onEvent: options.onEvent,
      truncation: truncationOf(options),
    }),
    stop,
    signal: options.signal === undefined ? stop.signal : AbortSignal.any([options.signal, stop.signal]),
    now,
  };
}

function openTools(
  options: RunAgentOptions,
  { run, ready }: { run: Run; ready: Promise<AgentSandbox> },
): ToolRegistry {
  const { setting, toolOptions } = options;
  if (options.tools !== undefined) return options.tools(ready);
  return createToolRegistry(ready, {
    ...toolOptions,
    gates: mergeGates([
      { source: "model", gates: profileOf(options.model.model).tools },
      { source: "options", gates: toolOptions?.gates ?? {} },
    ]),
    cwd: setting.cwd,
    truncation: truncationOf(options),
    environment: {
      CODEX_THREAD_ID: run.threadId,
      ...(setting.network.kind === "none" ? { CODEX_SANDBOX_NETWORK_DISABLED: "1" } : {}),
    },
  });
}

function truncationOf({ truncation, model }: RunAgentOptions): TruncationPolicy {
  return truncation ?? profileOf(model.model).truncation;
}

interface StartWatch {
  startMs: number | null;
  stop(): void;
}

/** Records when the sandbox is ready. One that cannot start ends the run at once, whatever the model is doing. */
function watchStart(ready: Promise<AgentSandbox>, { transcript, stop }: Run): StartWatch {
  const startedAt = performance.now();
  let isWatching = true;
  const watch: StartWatch = {
    startMs: null,
    stop() {
      isWatching = false;
    },
  };
  ready.then(
    ({ id, image, proof }) => {
      if (!isWatching) return;
      watch.startMs = performance.now() - startedAt;
      transcript.keep(records.sandboxRecord({ id, image, proof, startMs: watch.startMs }));
      transcript.emit({ kind: "sandbox-ready", sandboxId: id, startMs: watch.startMs });
    },
    (error: unknown) => {
      stop.abort(error);
    },
  );
  return watch;
}

type Ending = { status: "completed" } | { status: "interrupted" } | { status: "failed"; error: BrigError };

async function takeTurn(options: RunAgentOptions, context: Run & ResponseContext): Promise<Ending> {
  try {
    begin(options, context);
    await converse(options, context);
    // Even a turn without calls is not done in a sandbox that could not be made.
    await beforeAbort(context.sandboxReady, context.signal);
    return { status: "completed" };
  } catch (error) {
    if (options.signal?.aborted) return { status: "interrupted" };
    if (isBrigError(error)) return { status: "failed", error };
    throw error;
  }
}

async function beforeAbort(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    promise.then(() => resolve(), reject);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Everything the model and the session file are told before the first request. */
function begin(options: RunAgentOptions, { threadId, turnId, transcript, now }: Run): void {
  const { model, setting } = options;
  const instructions = options.instructions ?? defaultInstructions;
  const meta = { threadId, cwd: setting.cwd, version: readVersion(), provider: model.provider, instructions };
  const truncation = truncationOf(options);
  transcript.keep(records.sessionMeta({ ...meta, startedAt: now() }));
  transcript.emit({ kind: "session-started", threadId, sessionFile: transcript.sessionFile });
  transcript.keep(records.turnStartedEvent(turnId));
  transcript.keep(records.turnContext({ turnId, setting, model: model.model, truncation, now: now() }));
  for (const item of initialContext(setting, now())) transcript.recordItem(item);
  const asked = userMessage(options.prompt, options.images ?? []);
  transcript.recordItem(asked);
  transcript.keep(records.userMessageEvent(asked));
  transcript.emit({ kind: "turn-started" });
}

/** Asks until a response calls no tool. */
async function converse(options: RunAgentOptions, context: ResponseContext): Promise<void> {
  for (;;) {
    const { callCount } = await respond(options, context);
    if (callCount === 0) return;
  }
}

/** Asks once. A response that broke off is asked for again, with all that it had completed. */
async function respond(
  options: RunAgentOptions,
  context: ResponseContext,
): Promise<ResponseEnd & { kind: "completed" }> {
  const { model, transcript, tools, signal } = context;
  const maxAttempts = model.maxStreamRetries;
  for (let attempt = 1; ; attempt++) {
    const request = {
      instructions: options.instructions ?? defaultInstructions,
      input: transcript.toInput(),
      tools: tools.getSpecs(),
      outputSchema: options.outputSchema,
    };
    const end = await readResponse(request, context);
    if (end.kind === "completed") return end;
    if (attempt > maxAttempts) throw end.error;
    const { retryAfterMs } = end;
    const delayMs = retryDelayMs(attempt, { retryAfterMs, random: options.random ?? Math.random });
    transcript.emit({ kind: "reconnecting", attempt, maxAttempts, delayMs, reason: end.error.message });
    await pause(delayMs, signal);
  }
}

function conclude(run: Run, watch: StartWatch, ending: Ending): AgentResult {
  const { transcript, threadId, turnId } = run;
  const { usage, lastMessage, toolCalls, callLatenciesMs, sessionFile } = transcript;
  switch (ending.status) {
    case "completed":
      transcript.keep(records.turnCompletedEvent(turnId, lastMessage));
      transcript.emit({ kind: "turn-completed", usage });
      break;
    case "interrupted":
      transcript.recordItem(abortedTurnMessage());
      transcript.keep(records.turnAbortedEvent(turnId));
      transcript.emit({ kind: "turn-interrupted" });
      break;
    case "failed":
      transcript.keep(records.errorEvent(ending.error.message));
      transcript.emit({ kind: "turn-failed", error: ending.error });
      break;
    default:
      ending satisfies never;
  }
  const { startMs: sandboxStartMs } = watch;
  return { ...ending, threadId, lastMessage, usage, toolCalls, callLatenciesMs, sandboxStartMs, sessionFile };
}
