import type { AgentEvent } from "./events.js";

/** An event of a tool call. */
export type CallEvent = Extract<AgentEvent, { callId: string }>;

type EventOf<Kind extends CallEvent["kind"]> = Extract<CallEvent, { kind: Kind }>;

interface Part<Kind extends "command" | "patch" | "mcp-call" | "agent-call"> {
  readonly kind: Kind;
  readonly start: EventOf<`${Kind}-started`>;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Null until it has ended. */
  end: EventOf<`${Kind}-ended`> | null;
}

/** A command, with as much of its output as `Output` keeps. */
export type CommandSoFar<Output> = Part<"command"> & { readonly output: Output };

/** Something that a call does, from its start to its end. */
export type CallPart<Output> = CommandSoFar<Output> | Part<"patch"> | Part<"mcp-call"> | Part<"agent-call">;

/** A tool call, as far as its events have told of it. */
export interface CallSoFar<Output> {
  readonly callId: string;
  /** Null if the call had started before anybody listened. */
  start: EventOf<"call-started"> | null;
  /** Whether a person has approved what the call does. */
  isApproved: boolean;
  /** Why its command was not allowed to start; null otherwise. */
  declined: EventOf<"command-declined"> | null;
  /** The last part of each kind. A call of `js_repl` may have had others before. */
  parts: { readonly [Kind in CallPart<Output>["kind"]]?: CallPart<Output> & { kind: Kind } };
  hasPlan: boolean;
  /** The number of progress reports. */
  reports: number;
  end: EventOf<"call-ended"> | null;
}

interface OutputSoFar {
  push(chunk: Uint8Array): void;
}

/**
 * Follows the events of a session's calls. A call is known until it has ended, and until its command has: a command
 * may outlive its call.
 */
export class CallsSoFar<Output extends OutputSoFar | null = null> {
  readonly #calls = new Map<string, CallSoFar<Output>>();
  readonly #newOutput: () => Output;
  readonly #now: () => number;

  /** `newOutput` is called for each command that begins. What it returns is given every piece of that command's output. */
  constructor(newOutput: () => Output, { now = Date.now }: { now?: () => number } = {}) {
    this.#newOutput = newOutput;
    this.#now = now;
  }

  /** All calls that are known, in the order of their start. */
  get known(): CallSoFar<Output>[] {
    return [...this.#calls.values()];
  }

  /** Returns the call after the event, and the part that the event has started or ended; null if it has done neither. */
  take(event: CallEvent): { call: CallSoFar<Output>; part: CallPart<Output> | null } {
    const { callId } = event;
    const known = this.#calls.get(callId);
    const call = known ?? newCall(callId);
    const part = this.#change(call, event);
    const { command } = call.parts;
    const isOver = call.end !== null && (command === undefined || command.end !== null);
    if (isOver) this.#calls.delete(callId);
    // The late events of a call that was forgotten do not make it known again.
    else if (known === undefined && event.kind.endsWith("-started")) this.#calls.set(callId, call);
    return { call, part };
  }

  /** Its later events are those of an unknown call. */
  forget({ callId }: CallSoFar<Output>): void {
    this.#calls.delete(callId);
  }

  #change(call: CallSoFar<Output>, event: CallEvent): CallPart<Output> | null {
    const { parts } = call;
    switch (event.kind) {
      case "call-started": {
        // Some models give a call the id of an earlier one, whose command may still run.
        const running = parts.command?.end === null ? { command: parts.command } : {};
        Object.assign(call, newCall(event.callId), { start: event, parts: running });
        return null;
      }
      case "call-ended":
        call.end = event;
        return null;
      case "command-started":
        return this.#start(call, { kind: "command", ...this.#begun(event), output: this.#newOutput() });
      case "patch-started":
        return this.#start(call, { kind: "patch", ...this.#begun(event) });
      case "mcp-call-started":
        return this.#start(call, { kind: "mcp-call", ...this.#begun(event) });
      case "agent-call-started":
        return this.#start(call, { kind: "agent-call", ...this.#begun(event) });
      case "command-output":
        parts.command?.output?.push(event.chunk);
        return null;
      case "command-ended":
        return ended(parts.command, event);
      case "patch-ended":
        return ended(parts.patch, event);
      case "mcp-call-ended":
        return ended(parts["mcp-call"], event);
      case "agent-call-ended":
        return ended(parts["agent-call"], event);
      case "command-declined":
        call.declined = event;
        return null;
      case "approval-answered":
        call.isApproved ||= event.answer !== "denied" && event.answer !== "abort";
        return null;
      case "mcp-call-progress":
        call.reports++;
        return null;
      case "plan-updated":
        call.hasPlan = true;
        return null;
      case "approval-requested":
      case "mcp-question-asked":
      case "mcp-question-answered":
      case "restore-point-created":
        return null;
      default:
        return event satisfies never;
    }
  }

  #begun<Start>(start: Start): { start: Start; startedAt: number; end: null } {
    return { start, startedAt: this.#now(), end: null };
  }

  #start(call: CallSoFar<Output>, part: CallPart<Output>): CallPart<Output> {
    call.parts = { ...call.parts, [part.kind]: part };
    return part;
  }
}

function newCall<Output>(callId: string): CallSoFar<Output> {
  return {
    callId,
    start: null,
    isApproved: false,
    declined: null,
    parts: {},
    hasPlan: false,
    reports: 0,
    end: null,
  };
}

/** Null for the end of a part whose start is not known, or that has ended already. */
function ended<End, Ended extends { end: End | null }>(part: Ended | undefined, end: End): Ended | null {
  if (part === undefined || part.end !== null) return null;
  part.end = end;
  return part;
}
