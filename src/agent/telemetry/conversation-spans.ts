import type { Attributes, Context, Counter, Histogram, Span, Tracer } from "@opentelemetry/api";
import type { EgressEntry } from "../../sandbox/index.js";
import { readVersion } from "../../version.js";
import { noUsage, usageTogether } from "../model/model-client.js";
import { type CallEvent, type CallPart, type CallSoFar, CallsSoFar } from "../turn/calls-so-far.js";
import type { AgentEvent } from "../turn/events.js";

type Api = typeof import("@opentelemetry/api");
type EventOf<Kind extends AgentEvent["kind"]> = Extract<AgentEvent, { kind: Kind }>;

export interface Instruments {
  tracer: Tracer;
  tokens: Histogram;
  requestSeconds: Histogram;
  toolCalls: Counter;
  commands: Counter;
  sandboxes: Counter;
  egressBytes: Counter;
}

/** Boundaries that the conventions name for these two histograms. */
const TOKEN_BOUNDARIES = Array.from({ length: 14 }, (_, power) => 4 ** power);
const SECOND_BOUNDARIES = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power);

export function openInstruments(api: Api): Instruments {
  const version = readVersion();
  const meter = api.metrics.getMeter("brig", version);
  return {
    tracer: api.trace.getTracer("brig", version),
    tokens: meter.createHistogram("gen_ai.client.token.usage", {
      unit: "{token}",
      description: "Tokens of a request to a model",
      advice: { explicitBucketBoundaries: TOKEN_BOUNDARIES },
    }),
    requestSeconds: meter.createHistogram("gen_ai.client.operation.duration", {
      unit: "s",
      description: "Time from a request to a model to the end of its response",
      advice: { explicitBucketBoundaries: SECOND_BOUNDARIES },
    }),
    toolCalls: meter.createCounter("brig.tool.calls", {
      unit: "{call}",
      description: "Calls of tools that have ended",
    }),
    commands: meter.createCounter("brig.commands", {
      unit: "{command}",
      description: "Commands that have ended",
    }),
    sandboxes: meter.createCounter("brig.sandboxes", {
      unit: "{sandbox}",
      description: "Sandboxes that were started",
    }),
    egressBytes: meter.createCounter("brig.egress.io", {
      unit: "By",
      description: "Bytes of connections from sandboxes with an allow-list",
    }),
  };
}

/** Names and texts come from models, commands and endpoints. */
const MAX_NAME_CHARS = 200;
const MAX_CONTENT_CHARS = 64 * 1024;
/** The connections of a call may be known after it has ended. */
const REMEMBERED_CALLS = 1000;
/** Events before the first turn, whose spans are below that of the turn. */
const MAX_EARLY = 1000;

interface OpenTurn {
  span: Span;
  context: Context;
  usage: typeof noUsage;
  prompt: string;
  lastMessage: string | null;
}

interface OpenRequest {
  span: Span;
  startedAt: number;
  facts: Attributes;
  said: object[];
}

interface SpansOptions extends Instruments {
  api: Api;
  /** Whether spans contain prompts, answers, arguments and outputs. */
  capturesContent: boolean;
}

/**
 * Makes spans and measurements of the events of one conversation and of the agents that it starts, with the names of
 * OpenTelemetry's conventions for generative AI. Events come at the moment that they tell of, unless they say otherwise.
 */
export class ConversationSpans {
  /** What the spans of turns are below. */
  parent: Context;
  readonly #otel: SpansOptions;
  readonly #calls = new CallsSoFar(() => null);
  readonly #spans = new WeakMap<CallSoFar<null> | CallPart<null>, Span>();
  /** The contexts of the latest calls, by their ids. */
  readonly #contexts = new Map<string, Context>();
  readonly #agents = new Map<string, { spans: ConversationSpans; starter: ConversationSpans }>();
  /** The call in which other agents are started, while it runs. */
  #agentCall: Context | null = null;
  #facts: Attributes;
  #turn: OpenTurn | null = null;
  #request: OpenRequest | null = null;
  /** Null once the first turn has begun. */
  #early: (() => void)[] | null = [];

  /** `facts` are those of the agent, if it is one that a session has started. */
  constructor(otel: SpansOptions, facts: Attributes = { "gen_ai.agent.name": "brig" }) {
    this.#otel = otel;
    this.#facts = facts;
    this.parent = otel.api.ROOT_CONTEXT;
  }

  take(event: AgentEvent): void {
    if ("callId" in event) this.#takeCall(event);
    else this.#takeOther(event);
  }

  /** Ends all spans that are still open. */
  end(): void {
    for (const id of [...this.#agents.keys()]) this.#closeAgent(id);
    this.#endTurn("aborted");
    for (const call of this.#calls.known) this.#abandon(call);
  }

  #takeOther(event: Exclude<AgentEvent, CallEvent>): void {
    switch (event.kind) {
      case "session-started":
        this.#facts = { ...this.#facts, "gen_ai.conversation.id": event.threadId };
        break;
      case "turn-started":
        this.#beginTurn(event);
        break;
      case "request-started":
        this.#beginRequest(event);
        break;
      case "message":
        if (this.#turn !== null) this.#turn.lastMessage = event.text;
        this.#say({ type: "text", content: cut(event.text) });
        break;
      case "reasoning":
        if (event.text !== "") this.#say({ type: "reasoning", content: cut(event.text) });
        break;
      case "request-ended":
        this.#endRequest(event);
        break;
      case "sandbox-ready":
        this.#belowTurn(() => this.#sandbox(event));
        break;
      case "egress":
        this.#belowTurn(() => this.#connection(event.entry));
        break;
      case "agent-started":
        this.#openAgent(event);
        break;
      case "agent-event":
        this.#takeAgentEvent(event);
        break;
      case "agent-state":
        if (event.state.kind === "closed") this.#closeAgent(event.agentId);
        break;
      case "turn-completed":
        this.#endTurn(null);
        break;
      case "turn-failed":
        this.#endTurn(event.error.code);
        break;
      case "turn-interrupted":
        this.#endTurn("aborted");
        break;
      default:
        break;
    }
  }

  #beginTurn({ prompt }: EventOf<"turn-started">): void {
    this.#endTurn("aborted");
    this.#contexts.clear();
    const { tracer } = this.#otel;
    const attributes = { "gen_ai.operation.name": "invoke_agent", ...this.#facts };
    const name = `invoke_agent ${this.#facts["gen_ai.agent.name"]}`;
    const span = tracer.startSpan(name, { attributes }, this.parent);
    this.#turn = { span, context: this.#below(span, this.parent), usage: noUsage, prompt, lastMessage: null };
    for (const make of this.#early ?? []) make();
    this.#early = null;
  }

  #endTurn(failure: string | null): void {
    const turn = this.#turn;
    if (turn === null) return;
    this.#turn = null;
    for (const call of this.#calls.known) if (call.end === null) this.#abandon(call);
    const { span, usage, prompt, lastMessage } = turn;
    span.setAttributes({
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.output_tokens": usage.outputTokens,
    });
    if (this.#otel.capturesContent) {
      const said = lastMessage === null ? [] : [{ type: "text", content: cut(lastMessage) }];
      span.setAttributes({
        "gen_ai.input.messages": messageText("user", [{ type: "text", content: cut(prompt) }]),
        "gen_ai.output.messages": messageText("assistant", said),
      });
    }
    this.#conclude(span, failure);
  }

  #beginRequest({ provider, model }: EventOf<"request-started">): void {
    const facts = { "gen_ai.provider.name": shortened(provider), "gen_ai.request.model": shortened(model) };
    this.#facts = { ...this.#facts, ...facts };
    this.#turn?.span.setAttributes(facts);
    const { api, tracer } = this.#otel;
    const attributes = { "gen_ai.operation.name": "chat", ...this.#facts };
    const options = { kind: api.SpanKind.CLIENT, attributes };
    const span = tracer.startSpan(`chat ${shortened(model)}`, options, this.#context);
    this.#request = { span, startedAt: performance.now(), facts, said: [] };
  }

  #endRequest({ usage, model, finish, failure }: EventOf<"request-ended">): void {
    const request = this.#request;
    if (request === null) return;
    this.#request = null;
    const { span, facts, said } = request;
    const measured: Attributes = {
      "gen_ai.operation.name": "chat",
      ...facts,
      ...(model !== null && { "gen_ai.response.model": shortened(model) }),
    };
    span.setAttributes({
      ...measured,
      ...(finish !== null && { "gen_ai.response.finish_reasons": [finish] }),
      ...(usage !== null && {
        "gen_ai.usage.input_tokens": usage.inputTokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
        "gen_ai.usage.output_tokens": usage.outputTokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoningOutputTokens,
      }),
      ...(this.#otel.capturesContent && {
        "gen_ai.output.messages": messageText("assistant", said, finish ?? "error"),
      }),
    });
    this.#conclude(span, failure);
    const { tokens, requestSeconds } = this.#otel;
    const seconds = (performance.now() - request.startedAt) / 1000;
    requestSeconds.record(seconds, { ...measured, ...(failure !== null && { "error.type": failure }) });
    if (usage === null) return;
    tokens.record(usage.inputTokens, { ...measured, "gen_ai.token.type": "input" });
    tokens.record(usage.outputTokens, { ...measured, "gen_ai.token.type": "output" });
    if (this.#turn !== null) this.#turn.usage = usageTogether(this.#turn.usage, usage);
  }

  #takeCall(event: CallEvent): void {
    const { call, part } = this.#calls.take(event);
    if (event.kind === "call-started") this.#beginCall(call, event);
    if (event.kind === "agent-call-started") this.#agentCall = this.#contexts.get(event.callId) ?? null;
    if (part?.kind === "command") {
      if (part.end === null) this.#beginCommand(call, part);
      else this.#endCommand(part, part.end);
    }
    if (event.kind === "call-ended") {
      const { name, success, content } = event;
      const span = this.#spans.get(call);
      if (this.#otel.capturesContent) span?.setAttribute("gen_ai.tool.call.result", cut(content));
      this.#otel.toolCalls.add(1, { "gen_ai.tool.name": shortened(name), "brig.tool.success": success });
      this.#endCall(call, success ? null : "tool_failed");
    }
  }

  #beginCall(call: CallSoFar<null>, { callId, name, input }: EventOf<"call-started">): void {
    const span = this.#otel.tracer.startSpan(
      `execute_tool ${shortened(name)}`,
      {
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          ...("gen_ai.conversation.id" in this.#facts && {
            "gen_ai.conversation.id": this.#facts["gen_ai.conversation.id"],
          }),
          "gen_ai.tool.name": shortened(name),
          "gen_ai.tool.call.id": shortened(callId),
          "gen_ai.tool.type": "function",
          ...(this.#otel.capturesContent && { "gen_ai.tool.call.arguments": cut(input) }),
        },
      },
      this.#context,
    );
    this.#spans.set(call, span);
    this.#remember(callId, this.#below(span, this.#context));
    this.#say({ type: "tool_call", id: callId, name, arguments: cut(input) });
  }

  #endCall(call: CallSoFar<null>, failure: string | null): void {
    const span = this.#take(call);
    if (span !== null) this.#conclude(span, failure);
    if (this.#contexts.get(call.callId) === this.#agentCall) this.#agentCall = null;
  }

  /** Ends the spans of a call and its command. Nothing more is heard of them. */
  #abandon(call: CallSoFar<null>): void {
    const { command } = call.parts;
    if (command !== undefined) this.#take(command)?.end();
    this.#endCall(call, "aborted");
    this.#calls.forget(call);
  }

  #say(part: object): void {
    if (this.#otel.capturesContent) this.#request?.said.push(part);
  }

  #beginCommand(call: CallSoFar<null>, part: CallPart<null> & { kind: "command" }): void {
    const { argv } = part.start;
    const program = shortened(argv[0]?.split("/").at(-1) ?? "");
    const attributes = {
      "process.executable.name": program,
      ...(this.#otel.capturesContent && { "process.command_args": argv.map(cut) }),
    };
    const context = this.#contexts.get(call.callId) ?? this.#context;
    const span = this.#otel.tracer.startSpan(`command ${program}`, { attributes }, context);
    this.#spans.set(part, span);
  }

  #endCommand(part: CallPart<null> & { kind: "command" }, end: EventOf<"command-ended">): void {
    const { exitCode, causes = [], durationMs, usage } = end;
    this.#otel.commands.add(1, { "process.exit.code": exitCode });
    const span = this.#take(part);
    if (span === null) return;
    span.setAttributes({
      "process.exit.code": exitCode,
      "brig.command.duration": durationMs / 1000,
      "brig.command.cpu.user": usage.userMs / 1000,
      "brig.command.cpu.system": usage.systemMs / 1000,
      "brig.command.memory.peak": usage.maxRssBytes,
      ...(causes.length > 0 && { "brig.command.causes": causes.map(({ kind }) => kind) }),
    });
    this.#conclude(span, exitCode === 0 ? null : (causes[0]?.kind ?? String(exitCode)));
  }

  /** Makes a span of what may come before the first turn. */
  #belowTurn(make: () => void): void {
    if (this.#early === null) make();
    else if (this.#early.length < MAX_EARLY) this.#early.push(make);
  }

  #sandbox({ sandboxId, startMs, readyAt }: EventOf<"sandbox-ready">): void {
    this.#otel.sandboxes.add(1);
    const attributes = { "brig.sandbox.id": sandboxId, "brig.sandbox.start": startMs / 1000 };
    const options = { startTime: readyAt - startMs, attributes };
    this.#otel.tracer.startSpan("create_sandbox", options, this.#context).end(readyAt);
  }

  #connection(entry: EgressEntry): void {
    const { host, port, outcome, reason, method, way, count, callId, bytesOut, bytesIn } = entry;
    const io = { "brig.egress.decision": outcome };
    this.#otel.egressBytes.add(bytesOut, { ...io, "network.io.direction": "transmit" });
    this.#otel.egressBytes.add(bytesIn, { ...io, "network.io.direction": "receive" });
    const { api, tracer } = this.#otel;
    const context = (callId === null ? undefined : this.#contexts.get(callId)) ?? this.#context;
    const attributes: Attributes = {
      ...io,
      "brig.egress.count": count,
      "brig.egress.bytes_sent": bytesOut,
      "brig.egress.bytes_received": bytesIn,
      ...(host !== null && { "server.address": host }),
      ...(port !== null && { "server.port": port }),
      ...(way !== null && { "brig.egress.way": way }),
      ...(method !== null && { "http.request.method": method }),
      ...(this.#otel.capturesContent && entry.path !== null && { "url.path": entry.path }),
    };
    const options = { kind: api.SpanKind.CLIENT, startTime: entry.startedAtMs, attributes };
    const span = tracer.startSpan("egress", options, context);
    if (outcome !== "allowed") this.#fail(span, reason ?? outcome);
    // The sum of several connections at the same time is longer than all of them took.
    span.end(Math.min(entry.startedAtMs + entry.durationMs, Math.max(Date.now(), entry.startedAtMs)));
  }

  #openAgent({ agent: { id, parentId, nickname } }: EventOf<"agent-started">): void {
    const facts = { "gen_ai.agent.name": shortened(nickname), "gen_ai.agent.id": id };
    const starter = this.#agents.get(parentId)?.spans ?? this;
    this.#agents.set(id, { spans: new ConversationSpans(this.#otel, facts), starter });
  }

  #takeAgentEvent({ agentId, event }: EventOf<"agent-event">): void {
    const agent = this.#agents.get(agentId);
    if (agent === undefined) return;
    const { spans, starter } = agent;
    if (event.kind === "turn-started") spans.parent = starter.#agentCall ?? starter.#context;
    spans.take(event);
  }

  #closeAgent(id: string): void {
    this.#agents.get(id)?.spans.end();
    this.#agents.delete(id);
  }

  get #context(): Context {
    return this.#turn?.context ?? this.parent;
  }

  #below(span: Span, context: Context): Context {
    return this.#otel.api.trace.setSpan(context, span);
  }

  #remember(callId: string, context: Context): void {
    this.#contexts.set(callId, context);
    const [oldest] = this.#contexts.keys();
    if (this.#contexts.size > REMEMBERED_CALLS && oldest !== undefined) this.#contexts.delete(oldest);
  }

  /** The span of it, which ends now. */
  #take(key: CallSoFar<null> | CallPart<null>): Span | null {
    const span = this.#spans.get(key) ?? null;
    this.#spans.delete(key);
    return span;
  }

  #conclude(span: Span, failure: string | null): void {
    if (failure !== null) this.#fail(span, failure);
    span.end();
  }

  #fail(span: Span, failure: string): void {
    span.setStatus({ code: this.#otel.api.SpanStatusCode.ERROR });
    span.setAttribute("error.type", shortened(failure));
  }
}

function messageText(role: "user" | "assistant", parts: readonly object[], finish?: string): string {
  return JSON.stringify([{ role, parts, ...(finish !== undefined && { finish_reason: finish }) }]);
}

function shortened(text: string): string {
  return text.slice(0, MAX_NAME_CHARS);
}

function cut(text: string): string {
  return text.length <= MAX_CONTENT_CHARS ? text : `${text.slice(0, MAX_CONTENT_CHARS)}…`;
}
