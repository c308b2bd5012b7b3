import type { AgentEvent } from "../../agent/index.js";

type CallEnded = AgentEvent & { kind: "call-ended" };

/** Replaces the content of a declined command's call, which is written for the model, with the reason. */
export function withDeclineReason(event: CallEnded, declined: Map<string, string>): CallEnded {
  const reason = declined.get(event.callId);
  declined.delete(event.callId);
  return reason === undefined ? event : { ...event, content: `not run: ${reason}` };
}
