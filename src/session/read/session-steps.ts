import {
  type CallOutput,
  isToolCall,
  isToolOutput,
  type MessageItem,
  messageText,
  type ResponseItem,
  type ToolCallItem,
  wireItem,
} from "../../model/items.js";
import type { TokenUsage } from "../../model/model-client.js";
import type { ReadRecord, SessionEvent, SessionLine, TurnSettings } from "./session-lines.js";
import { isPrompt, tokenUsage } from "./session-reader.js";

/** A session as a series of things said: what brig told the model, what the user asked, and each response of the model. */
export type SessionStep = SpokenStep | AgentStep;

interface StepFrame {
  /** From 1, without gaps. */
  number: number;
  timestamp: string | null;
  /** The last line of the file that belongs to it. */
  lastLine: number;
  /** Taken over from the session that this one is a fork of. */
  isCopied: boolean;
}

/** What a person said, or what the model was told. */
export interface SpokenStep extends StepFrame {
  source: "system" | "user";
  content: MessageItem["content"];
  /** It tells of a compaction, and what the summary says. */
  isCompaction: boolean;
}

/** One response of the model, with what its calls gave. */
export interface AgentStep extends StepFrame {
  source: "agent";
  text: string;
  reasoning: string;
  calls: StepCall[];
  /** All that the response consisted of, in its order. */
  items: ResponseItem[];
  usage: TokenUsage | null;
  model: string | null;
  effort: string | null;
  /** What the turn ran with; null where the file does not say. */
  turn: TurnSettings | null;
  /** Why the turn ended with this step, where it did not end well. */
  ending: "interrupted" | "failed" | null;
}

export interface StepCall {
  callId: string;
  name: string;
  /** The arguments as they were sent: JSON, or a text for a freeform tool. */
  input: string;
  isFreeform: boolean;
  /** Null for one that has none: a hosted tool's, or one that was cut off. */
  output: CallOutput | null;
  /** The payload of what brig recorded of the call itself. */
  cost: Readonly<Record<string, unknown>> | null;
  /** What a person was asked about it and answered, in order: the payloads of the records. */
  approvals: Readonly<Record<string, unknown>>[];
  /** The model's provider ran it. */
  isHosted: boolean;
}

/** The steps of a session, as its lines come. Memory is that of one step. */
export async function* stepsOf(lines: AsyncIterable<SessionLine>): AsyncIterable<SessionStep> {
  const builder = new StepBuilder();
  for await (const line of lines) {
    if (line.kind !== "record") continue;
    yield* builder.add(line.record, { line: line.line, timestamp: line.timestamp });
  }
  yield* builder.end();
}

interface Place {
  line: number;
  timestamp: string | null;
}

class StepBuilder {
  #number = 0;
  #open: AgentStep | null = null;
  /** Of the open step, by their ids: each one's last call, and those without an output, the last one at the end. */
  #calls = new Map<string, { last: StepCall; waiting: StepCall[] }>();
  /** The open step's calls are being answered, or it was counted: what the model says next is another response. */
  #isAnswered = false;
  #isCopied = false;
  #hasInstructions = false;
  #turn: TurnSettings | null = null;

  *add(record: ReadRecord, place: Place): Iterable<SessionStep> {
    switch (record.type) {
      case "session_meta":
        yield* this.#addInstructions(record.meta, place);
        break;
      case "turn_context":
        this.#turn = record.context;
        break;
      case "response_item":
        yield* this.#addItem(record.item, place);
        break;
      case "compacted":
        yield* this.end();
        yield {
          ...this.#told(`The conversation was compacted. ${record.message}`.trimEnd(), place),
          isCompaction: true,
        };
        break;
      case "event_msg":
        yield* this.#addEvent(record.event, place);
        break;
      case "brig":
        this.#addOwn(record, place);
        break;
      case "other":
        break;
      default:
        record satisfies never;
    }
  }

  *end(): Iterable<SessionStep> {
    if (this.#open !== null) yield this.#open;
    this.#open = null;
    this.#calls = new Map();
    this.#isAnswered = false;
  }

  *#addInstructions(
    { base_instructions: text, forked_from_id: forkedFrom }: { [Key in string]?: unknown },
    place: Place,
  ): Iterable<SessionStep> {
    // The second one, in a fork, is the original's.
    if (this.#hasInstructions) return;
    this.#hasInstructions = true;
    this.#isCopied = typeof forkedFrom === "string";
    if (typeof text === "string" && text !== "") yield* this.#note(text, place);
  }

  *#addItem(item: ResponseItem, place: Place): Iterable<SessionStep> {
    if (isToolOutput(item)) {
      const call = this.#calls.get(item.call_id)?.waiting.pop();
      if (call === undefined || this.#open === null) return;
      call.output = item.output;
      this.#open.lastLine = place.line;
      this.#isAnswered = true;
      return;
    }
    if (item.type === "message" && item.role !== "assistant") {
      yield* this.end();
      yield this.#spoken(isPrompt(item) ? "user" : "system", item.content, place);
      return;
    }
    if (item.type === "opaque" && item.item.type === "ghost_snapshot") return;
    if (this.#isAnswered) yield* this.end();
    this.#extend(this.#openStep(place), item);
  }

  *#addEvent(event: SessionEvent, place: Place): Iterable<SessionStep> {
    const open = this.#open;
    switch (event.type) {
      case "token_count":
        if (open === null || !event.info) break;
        open.usage = tokenUsage(event.info.last_token_usage);
        open.lastLine = place.line;
        this.#isAnswered = true;
        break;
      case "turn_aborted":
      case "error":
        if (open === null) break;
        open.ending = event.type === "error" ? "failed" : "interrupted";
        open.lastLine = place.line;
        yield* this.end();
        break;
      case "task_complete":
        if (open !== null) open.lastLine = place.line;
        yield* this.end();
        break;
      case "thread_rolled_back":
        yield* this.#note(`The last ${event.num_turns} turns were taken back.`, place);
        break;
      default:
        break;
    }
  }

  #addOwn({ name, payload }: ReadRecord & { type: "brig" }, place: Place): void {
    if (name === "fork") this.#isCopied = false;
    const open = this.#open;
    const call = typeof payload.call_id === "string" ? this.#calls.get(payload.call_id)?.last : undefined;
    if (open === null || call === undefined) return;
    if (name === "call") call.cost = payload;
    else if (name === "approval" && typeof payload.answer === "string") call.approvals.push(payload);
    else return;
    open.lastLine = place.line;
  }

  *#note(text: string, place: Place): Iterable<SessionStep> {
    yield* this.end();
    yield this.#told(text, place);
  }

  #told(text: string, place: Place): SpokenStep {
    return this.#spoken("system", [{ type: "input_text", text }], place);
  }

  #spoken(source: "system" | "user", content: MessageItem["content"], place: Place): SpokenStep {
    return { ...this.#frame(place), source, content, isCompaction: false };
  }

  #openStep(place: Place): AgentStep {
    this.#open ??= {
      ...this.#frame(place),
      source: "agent",
      text: "",
      reasoning: "",
      calls: [],
      items: [],
      usage: null,
      model: this.#turn?.model ?? null,
      effort: this.#turn?.effort ?? null,
      turn: this.#turn,
      ending: null,
    };
    this.#open.lastLine = place.line;
    return this.#open;
  }

  #extend(step: AgentStep, item: ResponseItem): void {
    step.items.push(item);
    if (item.type === "message") step.text = joined(step.text, messageText(item));
    else if (item.type === "reasoning")
      step.reasoning = joined(step.reasoning, item.summary.map(({ text }) => text).join("\n"));
    else if (isToolCall(item)) this.#addCall(step, callOf(item));
    else this.#addCall(step, hostedCall(item, `${step.number}_${step.calls.length + 1}`));
  }

  #addCall(step: AgentStep, call: StepCall): void {
    step.calls.push(call);
    const waiting: StepCall[] = this.#calls.get(call.callId)?.waiting ?? [];
    waiting.push(call);
    this.#calls.set(call.callId, { last: call, waiting });
  }

  #frame({ line, timestamp }: Place): StepFrame {
    this.#number++;
    return { number: this.#number, timestamp, lastLine: line, isCopied: this.#isCopied };
  }
}

function callOf(item: ToolCallItem): StepCall {
  const about = { callId: item.call_id, output: null, cost: null, approvals: [], isHosted: false };
  if (item.type === "function_call")
    return { ...about, name: item.name, input: item.arguments, isFreeform: false };
  if (item.type === "custom_tool_call")
    return { ...about, name: item.name, input: item.input, isFreeform: true };
  return { ...about, name: "local_shell", input: JSON.stringify(item.action), isFreeform: false };
}

/** A call that the model's provider ran itself. */
function hostedCall(item: ResponseItem, madeId: string): StepCall {
  const { type, id, call_id, ...rest } = wireItem(item);
  const given = [call_id, id].find((one) => typeof one === "string");
  return {
    callId: typeof given === "string" ? given : `hosted_${madeId}`,
    name: String(type).replace(/_call$/, ""),
    input: JSON.stringify(rest),
    isFreeform: false,
    output: null,
    cost: null,
    approvals: [],
    isHosted: true,
  };
}

function joined(before: string, text: string): string {
  return before === "" || text === "" ? before + text : `${before}\n${text}`;
}
