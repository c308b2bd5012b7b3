import type { AgentEvent } from "../../agent/turn/events.js";

type CallEnded = AgentEvent & { kind: "call-ended" };

/** The end of a call, where its command was not let run with the reason alone: the rest is written for the model. */
export function inWords(event: CallEnded, declined: Map<string, string>): CallEnded {
  const reason = declined.get(event.callId);
  declined.delete(event.callId);
  return reason === undefined ? event : { ...event, content: `not run: ${reason}` };
}
