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
import type { SessionRestorePoint } from "../restore-point.js";
import type { ReadRecord, SessionEvent, SessionLine, TurnSettings } from "./session-lines.js";
import { isPrompt, readPoint, tokenUsage } from "./session-reader.js";

/** A session as a series of messages: from brig, from the user, and the model's responses. */
export type SessionStep = MessageStep | AgentStep;

interface StepFrame {
  /** Counts from 1. */
  number: number;
  timestamp: string | null;
  /** The number of the last line that belongs to the step. */
  lastLine: number;
  /** Whether the step was copied from the session that this one is a fork of. */
  isCopied: boolean;
}

export interface MessageStep extends StepFrame {
  source: "system" | "user";
  content: MessageItem["content"];
  /** Whether the step is a compaction and its summary. */
  isCompaction: boolean;
  /** The state to which the user had put the workspace back before this message; null for other messages. */
  undo: SessionRestorePoint | null;
}

/** One response of the model, with the outputs of its calls. */
export interface AgentStep extends StepFrame {
  source: "agent";
  text: string;
  reasoning: string;
  calls: StepCall[];
  /** All items of the response, in their order. */
  items: ResponseItem[];
  usage: TokenUsage | null;
  model: string | null;
  effort: string | null;
  /** The settings of the turn; null if the file does not contain them. */
  turn: TurnSettings | null;
  /** Ending of the turn, if it ended with this step and was not completed. */
  ending: "interrupted" | "failed" | null;
}

export interface StepCall {
  callId: string;
  name: string;
  /** The arguments as the model sent them: JSON, or the text for a freeform tool. */
  input: string;
  isFreeform: boolean;
  /** Null for a hosted tool's call, or one that was cut off. */
  output: CallOutput | null;
  /** The payload of the call's `brig.call` record. */
  cost: Readonly<Record<string, unknown>> | null;
  /** The payloads of the call's answered `brig.approval` records, in order. */
  approvals: Readonly<Record<string, unknown>>[];
  /** The state of the workspace after the call; null if it changed nothing, or no state was kept. */
  point: SessionRestorePoint | null;
  /** Whether the model's provider ran the call. */
  isHosted: boolean;
}

/** Builds the steps of a session from its lines, with one step in memory at a time. */
export async function* stepsOf(lines: AsyncIterable<SessionLine>): AsyncIterable<SessionStep> {
  const builder = new StepBuilder();
  for await (const line of lines) {
    if (line.kind !== "record") continue;
    yield* builder.add(line.record, { line: line.line, timestamp: line.timestamp });
  }
  yield* builder.end();
}

interface Position {
  line: number;
  timestamp: string | null;
}

class StepBuilder {
  #number = 0;
  #open: AgentStep | null = null;
  /** The open step's calls by id: the last one, and those without an output, in order. */
  #calls = new Map<string, { last: StepCall; waiting: StepCall[] }>();
  /** Whether the open step has an output or a token count, so that the next item starts another step. */
  #isAnswered = false;
  #isCopied = false;
  #hasInstructions = false;
  #turn: TurnSettings | null = null;
  /** Set when the record of an undo was read; the message that tells the model about it comes next. */
  #undo: SessionRestorePoint | null = null;

  *add(record: ReadRecord, position: Position): Iterable<SessionStep> {
    switch (record.type) {
      case "session_meta":
        yield* this.#addInstructions(record.meta, position);
        break;
      case "turn_context":
        this.#turn = record.context;
        break;
      case "response_item":
        yield* this.#addItem(record.item, position);
        break;
      case "compacted":
        yield* this.end();
        yield {
          ...this.#systemMessage(`The conversation was compacted. ${record.message}`.trimEnd(), position),
          isCompaction: true,
        };
        break;
      case "event_msg":
        yield* this.#addEvent(record.event, position);
        break;
      case "brig":
        this.#addOwn(record, position);
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
    position: Position,
  ): Iterable<SessionStep> {
    // The second record, in a fork, is the original's.
    if (this.#hasInstructions) return;
    this.#hasInstructions = true;
    this.#isCopied = typeof forkedFrom === "string";
    if (typeof text === "string" && text !== "") yield* this.#note(text, position);
  }

  *#addItem(item: ResponseItem, position: Position): Iterable<SessionStep> {
    if (isToolOutput(item)) {
      const call = this.#calls.get(item.call_id)?.waiting.pop();
      if (call === undefined || this.#open === null) return;
      call.output = item.output;
      this.#open.lastLine = position.line;
      this.#isAnswered = true;
      return;
    }
    if (item.type === "message" && item.role !== "assistant") {
      yield* this.end();
      yield this.#message(isPrompt(item) ? "user" : "system", item.content, position);
      return;
    }
    if (item.type === "opaque" && item.item.type === "ghost_snapshot") return;
    if (this.#isAnswered) yield* this.end();
    this.#extend(this.#openStep(position), item);
  }

  *#addEvent(event: SessionEvent, position: Position): Iterable<SessionStep> {
    const open = this.#open;
    switch (event.type) {
      case "token_count":
        if (open === null || !event.info) break;
        open.usage = tokenUsage(event.info.last_token_usage);
        open.lastLine = position.line;
        this.#isAnswered = true;
        break;
      case "turn_aborted":
      case "error":
        if (open === null) break;
        open.ending = event.type === "error" ? "failed" : "interrupted";
        open.lastLine = position.line;
        yield* this.end();
        break;
      case "task_complete":
        if (open !== null) open.lastLine = position.line;
        yield* this.end();
        break;
      case "thread_rolled_back":
        yield* this.#note(`The last ${event.num_turns} turns were taken back.`, position);
        break;
      default:
        break;
    }
  }

  #addOwn({ name, payload }: ReadRecord & { type: "brig" }, position: Position): void {
    if (name === "fork") this.#isCopied = false;
    if (name === "undo") this.#undo = readPoint(payload);
    const open = this.#open;
    const call = typeof payload.call_id === "string" ? this.#calls.get(payload.call_id)?.last : undefined;
    if (open === null || call === undefined) return;
    if (name === "call") call.cost = payload;
    else if (name === "approval" && typeof payload.answer === "string") call.approvals.push(payload);
    else if (name === "restore_point") call.point = readPoint(payload);
    else return;
    open.lastLine = position.line;
  }

  *#note(text: string, position: Position): Iterable<SessionStep> {
    yield* this.end();
    yield this.#systemMessage(text, position);
  }

  #systemMessage(text: string, position: Position): MessageStep {
    return this.#message("system", [{ type: "input_text", text }], position);
  }

  #message(source: "system" | "user", content: MessageItem["content"], position: Position): MessageStep {
    const undo = this.#undo;
    this.#undo = null;
    return { ...this.#frame(position), source, content, isCompaction: false, undo };
  }

  #openStep(position: Position): AgentStep {
    this.#open ??= {
      ...this.#frame(position),
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
    this.#open.lastLine = position.line;
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

  #frame({ line, timestamp }: Position): StepFrame {
    this.#number++;
    return { number: this.#number, timestamp, lastLine: line, isCopied: this.#isCopied };
  }
}

function callOf(item: ToolCallItem): StepCall {
  const about = {
    callId: item.call_id,
    output: null,
    cost: null,
    approvals: [],
    point: null,
    isHosted: false,
  };
  if (item.type === "function_call")
    return { ...about, name: item.name, input: item.arguments, isFreeform: false };
  if (item.type === "custom_tool_call")
    return { ...about, name: item.name, input: item.input, isFreeform: true };
  return { ...about, name: "local_shell", input: JSON.stringify(item.action), isFreeform: false };
}

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
    point: null,
    isHosted: true,
  };
}

function joined(before: string, text: string): string {
  return before === "" || text === "" ? before + text : `${before}\n${text}`;
}

/** A step of a session that left a restore point of its copy-on-write workspace. */
export interface ChangingStep {
  /** The number of the step, as `brig sessions show` prints it. */
  step: number;
  /** The call that changed the workspace; null if the user has undone a call. */
  call: StepCall | null;
  point: SessionRestorePoint;
}

/** The steps of a session that left restore points, one for each call, in order. */
export async function* changingSteps(lines: AsyncIterable<SessionLine>): AsyncIterable<ChangingStep> {
  for await (const step of stepsOf(lines)) {
    if (step.source !== "agent") {
      if (step.undo !== null) yield { step: step.number, call: null, point: step.undo };
      continue;
    }
    const left = step.calls.flatMap((call) => (call.point === null ? [] : [{ call, point: call.point }]));
    // Calls that ran at the same time may have ended in another order.
    for (const each of left.toSorted((a, b) => a.point.number - b.point.number))
      yield { step: step.number, ...each };
  }
}
