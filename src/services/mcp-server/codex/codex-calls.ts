import type {
  CallToolRequestParams,
  CallToolResult,
  InputRequiredResult,
} from "@modelcontextprotocol/server";
import type { TurnResult } from "../../../agent/index.js";
import { type BrigError, isBrigError } from "../../../errors.js";
import { allEnded } from "../served-client.js";
import type { Thread } from "./thread.js";
import type { ThreadList } from "./thread-list.js";
import { type ParsedCall, parseCodexCall, parseReplyCall } from "./tool-arguments.js";
import { type ClientCall, TurnRun } from "./turn-run.js";

/** The answer to a question that was the result of an earlier call. */
export interface CallAnswer {
  state: string;
  replies: Readonly<Record<string, unknown>> | undefined;
}

interface SuspendedRun {
  run: TurnRun;
  expiry: NodeJS.Timeout;
}

const MAX_SUSPENDED = 64;
/** How long a question may stay unanswered. After that the turn is interrupted. */
const ANSWER_MS = 60 * 60_000;

/** The calls of one client. */
export class CodexCalls {
  readonly #threads: ThreadList;
  readonly #running = new Set<TurnRun>();
  /** Turns whose client is asking its user, by the ids of their questions. */
  readonly #suspended = new Map<string, SuspendedRun>();

  constructor(threads: ThreadList) {
    this.#threads = threads;
  }

  /** A call that is invalid or fails resolves to a result with `isError`. So does one that is cancelled. */
  async call(
    params: CallToolRequestParams,
    call: ClientCall,
    answer: CallAnswer | null,
  ): Promise<CallToolResult | InputRequiredResult> {
    if (answer !== null) return await this.#answered(answer, call);
    const parsed = parseCall(params);
    if (parsed.kind === "invalid") return failure(parsed.reason);
    const run = new TurnRun(call, async (own) => await this.#take(parsed, own, call));
    return await this.#goOn(run, call);
  }

  /** Interrupts every call, and closes the sessions whose last caller was this client. */
  async close(): Promise<void> {
    for (const { expiry } of this.#suspended.values()) clearTimeout(expiry);
    this.#suspended.clear();
    for (const run of this.#running) run.interrupt("the client is gone");
    const closed = this.#threads.closeOf(this);
    await Promise.allSettled([closed, ...[...this.#running].map((run) => run.settled())]);
    // Again, for sessions that were still being opened the first time.
    await allEnded([closed, this.#threads.closeOf(this)]);
  }

  async #answered({ state, replies }: CallAnswer, call: ClientCall) {
    const suspended = this.#suspended.get(state);
    if (suspended === undefined)
      return failure("The question that this call answers is not open any more. Call codex-reply to go on.");
    clearTimeout(suspended.expiry);
    this.#suspended.delete(state);
    suspended.run.answer(state, replies);
    return await this.#goOn(suspended.run, call);
  }

  async #goOn(run: TurnRun, call: ClientCall): Promise<CallToolResult | InputRequiredResult> {
    const outcome = await run.goOn(call);
    if (outcome.kind === "result") return outcome.result;
    if (this.#suspended.size >= MAX_SUSPENDED) {
      run.interrupt("too many questions are open");
      return failure(`${MAX_SUSPENDED} questions are open already. Answer one of them first.`);
    }
    const expiry = setTimeout(() => {
      this.#suspended.delete(outcome.id);
      run.interrupt("the question was not answered");
    }, ANSWER_MS);
    this.#suspended.set(outcome.id, { run, expiry });
    return outcome.question;
  }

  async #take(
    parsed: Exclude<ParsedCall, { kind: "invalid" }>,
    run: TurnRun,
    call: ClientCall,
  ): Promise<CallToolResult> {
    this.#running.add(run);
    try {
      const thread = await this.#open(parsed, call);
      run.threadId = thread.id;
      return turnResult(thread.id, await thread.takeTurn(parsed.prompt, run.caller));
    } catch (error) {
      if (!isBrigError(error)) throw error;
      return failedStart(parsed, error);
    } finally {
      this.#running.delete(run);
    }
  }

  async #open(parsed: Exclude<ParsedCall, { kind: "invalid" }>, { asking }: ClientCall): Promise<Thread> {
    const opener = { owner: this, canAsk: asking.kind !== "nobody" };
    return parsed.kind === "codex"
      ? await this.#threads.begin(parsed.settings, opener)
      : await this.#threads.find(parsed.threadId, opener);
  }
}

function parseCall({ name, arguments: given }: CallToolRequestParams): ParsedCall {
  if (name === "codex") return parseCodexCall(given);
  if (name === "codex-reply") return parseReplyCall(given);
  return { kind: "invalid", reason: `Unknown tool '${name.slice(0, 200)}'` };
}

function turnResult(threadId: string, { status, lastMessage, error }: TurnResult): CallToolResult {
  if (status === "completed") return result(threadId, lastMessage ?? "");
  const text = error === undefined ? "The turn was interrupted." : describeProblem(error);
  return { ...result(threadId, text), isError: true };
}

function failedStart(parsed: Exclude<ParsedCall, { kind: "invalid" }>, error: BrigError): CallToolResult {
  if (parsed.kind === "codex-reply" && error.code === "session.unknown") {
    const text = `Session not found for thread_id: ${parsed.threadId}`;
    return { ...result(parsed.threadId, text), isError: true };
  }
  const isSetting = error.code === "config.invalid" || error.code === "usage.invalid";
  const before = isSetting
    ? "Failed to load Codex configuration from overrides"
    : "Failed to start Codex session";
  return failure(`${before}: ${describeProblem(error)}`);
}

function result(threadId: string, text: string): CallToolResult {
  return { content: [{ type: "text", text }], structuredContent: { threadId, content: text } };
}

function failure(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

/** What is wrong, and what to do about it. */
function describeProblem({ message, hint }: BrigError): string {
  return hint === undefined ? message : `${message}\n${hint}`;
}
