import { randomUUID } from "node:crypto";
import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import { BrigError } from "../../../errors.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import type { CodexEvent, CodexMessage } from "./events/codex-event.js";
import { EventFeed, type Notify } from "./events/event-feed.js";
import type { Elicitation } from "./questions/approval-question.js";
import type { Ask, Caller } from "./questions/current-caller.js";

/** A client's `tools/call`. */
export interface ClientCall {
  id: string | number;
  signal: AbortSignal;
  notify: Notify;
  /** Undefined: the client wants no progress. */
  progressToken: string | number | undefined;
  /**
   * How its user is asked: with a request, with a result that the client answers with another call, or not at
   * all.
   */
  asking: { kind: "request"; ask: Ask } | { kind: "result" } | { kind: "nobody" };
}

/** The answer to a call: the result of the turn, or a question that the client answers with another call. */
type RunOutcome =
  | { kind: "result"; result: CallToolResult }
  | { kind: "question"; id: string; question: InputRequiredResult };

interface OpenQuestion {
  /**
   * Random, so that it cannot be guessed, and different for each question, so that answers are never mixed
   * up.
   */
  id: string;
  elicitation: Elicitation;
  answer(reply: unknown): void;
}

/** A result has at most one question, under this key. */
const QUESTION = "question";
/** How often a client hears that the turn goes on. Clients give up on calls that are silent for longer. */
const STILL_RUNNING_MS = 15_000;
const PIECES: ReadonlySet<string> = new Set(["exec_command_output_delta", "agent_message_content_delta"]);

/**
 * A turn that a client has called for. A question may end the call before the turn; another call then goes on
 * with it.
 */
export class TurnRun {
  /** Known when the session is open. */
  threadId = "";
  readonly #stop = new AbortController();
  readonly #result: Promise<CallToolResult>;
  #questions: OpenQuestion[] = [];
  #call: ClientCall;
  #feed: EventFeed;
  #progress = 0;
  #onQuestion: () => void = () => undefined;

  constructor(call: ClientCall, take: (run: TurnRun) => Promise<CallToolResult>) {
    this.#call = call;
    this.#feed = new EventFeed(call.notify);
    this.#result = Promise.resolve().then(() => take(this));
    this.#result.catch(() => undefined);
  }

  get caller(): Caller {
    return {
      requestId: this.#call.id,
      signal: this.#stop.signal,
      onEvent: (event) => this.#tell(event),
      ask: this.#call.asking.kind === "nobody" ? null : (question, options) => this.#ask(question, options),
    };
  }

  /**
   * Goes on until there is a result, or a question to be answered by another call. Cancelling the call
   * interrupts the turn.
   */
  async goOn(call: ClientCall): Promise<RunOutcome> {
    this.#call = call;
    this.#feed = new EventFeed(call.notify);
    const cancel = () => this.interrupt("the client has cancelled the call");
    call.signal.addEventListener("abort", cancel, { once: true });
    if (call.signal.aborted) cancel();
    const alive = setInterval(() => this.#tellProgress("still at work"), STILL_RUNNING_MS);
    try {
      const outcome = await Promise.race([this.#outcome(), this.#nextQuestion()]);
      await this.#feed.flush();
      return outcome;
    } finally {
      clearInterval(alive);
      call.signal.removeEventListener("abort", cancel);
    }
  }

  /** Takes the answer to a question, unless nobody waits for it any more. */
  answer(questionId: string, replies: Readonly<Record<string, unknown>> | undefined): void {
    const at = this.#questions.findIndex(({ id }) => id === questionId);
    if (at !== -1) this.#questions.splice(at, 1)[0]?.answer(replies?.[QUESTION]);
  }

  interrupt(reason: string): void {
    this.#stop.abort(new BrigError(reason, { code: "aborted" }));
  }

  /** Resolves when the turn is over, however it ended. */
  async settled(): Promise<void> {
    await this.#result.catch(() => undefined);
  }

  async #outcome(): Promise<RunOutcome> {
    return { kind: "result", result: await this.#result };
  }

  #nextQuestion(): Promise<RunOutcome> {
    return new Promise((resolve) => {
      this.#onQuestion = () => {
        const [open] = this.#questions;
        if (open === undefined) return;
        const params = { mode: "form", ...open.elicitation };
        const inputRequests = { [QUESTION]: { method: "elicitation/create", params } };
        const question = { resultType: "input_required", inputRequests, requestState: open.id };
        resolve({ kind: "question", id: open.id, question: question as InputRequiredResult });
      };
      this.#onQuestion();
    });
  }

  async #ask(elicitation: Elicitation, options: Parameters<Ask>[1]): Promise<unknown> {
    const { asking } = this.#call;
    if (asking.kind === "request") {
      await this.#feed.flush();
      return await asking.ask(elicitation, options);
    }
    return await new Promise((resolve, reject) => {
      const { signal } = options;
      const open: OpenQuestion = {
        id: randomUUID(),
        elicitation,
        answer: (reply) => {
          signal?.removeEventListener("abort", withdraw);
          resolve(reply);
        },
      };
      this.#questions.push(open);
      const withdraw = () => {
        this.#questions = this.#questions.filter((one) => one !== open);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", withdraw, { once: true });
      this.#onQuestion();
    });
  }

  #tell({ id, msg }: CodexEvent): void {
    const _meta = { requestId: this.#call.id, threadId: this.threadId };
    this.#feed.push("codex/event", { _meta, id, msg }, { isPiece: PIECES.has(msg.type) });
    const text = progressText(msg);
    if (text !== null) this.#tellProgress(text);
  }

  #tellProgress(message: string): void {
    const { progressToken } = this.#call;
    if (progressToken === undefined) return;
    this.#progress++;
    this.#feed.push("notifications/progress", { progressToken, progress: this.#progress, message });
  }
}

const MAX_CHARS = 200;

/** The text that a client can show as progress; null for an event that is not shown. */
function progressText(message: CodexMessage): string | null {
  switch (message.type) {
    case "task_started":
      return "the turn has begun";
    case "agent_message":
      return shown(message.message);
    case "exec_command_begin":
      return `runs ${shown(commandOf(message))}`;
    case "patch_apply_begin":
      return "applies a patch";
    case "exec_approval_request":
    case "apply_patch_approval_request":
      return "waits for approval";
    default:
      return null;
  }
}

function commandOf({ parsed_cmd: commands }: CodexMessage): unknown {
  return Array.isArray(commands) ? commands[0]?.cmd : null;
}

function shown(text: unknown): string {
  const start = String(text).slice(0, MAX_CHARS);
  return neutraliseLine(start) + (String(text).length > MAX_CHARS ? "…" : "");
}
