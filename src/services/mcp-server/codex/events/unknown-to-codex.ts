import type { AgentEvent } from "../../../../agent/index.js";
import { agentEventKinds } from "../../../../agent/index.js";

/** Codex has no event for a refused command, and the other kinds exist only in brig. */
const unknown = [
  "command-declined",
  "mcp-servers-starting",
  "mcp-call-progress",
  "mcp-question-asked",
  "mcp-question-answered",
  "session-started",
  "turn-started",
  "sandbox-ready",
  "setup-started",
  "setup-output",
  "setup-ended",
  "compaction-started",
  "receipt",
  "restore-point-created",
  "egress",
  ...agentEventKinds,
] as const satisfies readonly AgentEvent["kind"][];

type UnknownEvent = Extract<AgentEvent, { kind: (typeof unknown)[number] }>;

export function isUnknownToCodex(event: AgentEvent): event is UnknownEvent {
  return unknown.some((kind) => kind === event.kind);
}
