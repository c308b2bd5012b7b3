import type { AgentEvent } from "../../../agent/index.js";
import { agentEventKinds } from "../../../agent/index.js";

/**
 * Events for which the client is sent no update. It sees a question in the request that asks it, and the
 * arguments and the output of an MCP server's tool in the updates about that call.
 */
const quiet = [
  "session-started",
  "sandbox-ready",
  "restore-point-created",
  "egress",
  "approval-requested",
  "approval-answered",
  "mcp-call-started",
  "mcp-call-progress",
  "mcp-question-asked",
  "mcp-question-answered",
  "mcp-call-ended",
  ...agentEventKinds,
] as const satisfies readonly AgentEvent["kind"][];

type QuietEvent = Extract<AgentEvent, { kind: (typeof quiet)[number] }>;

export function isQuiet(event: AgentEvent): event is QuietEvent {
  return quiet.some((kind) => kind === event.kind);
}
