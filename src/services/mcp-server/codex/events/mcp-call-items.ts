import type { AgentEvent } from "../../../../agent/index.js";
import type { CodexMessage } from "./codex-event.js";

type McpCallEvent = Extract<AgentEvent, { kind: "mcp-call-started" | "mcp-call-ended" }>;

/** Translates the events of calls to the MCP servers that the session itself uses. */
export class McpCallItems {
  readonly #invocations = new Map<string, Readonly<Record<string, unknown>>>();

  translate(event: McpCallEvent): CodexMessage[] {
    const { callId: call_id } = event;
    if (event.kind === "mcp-call-started") {
      const invocation = { server: event.server, tool: event.tool, arguments: event.arguments };
      this.#invocations.set(call_id, invocation);
      return [{ type: "mcp_tool_call_begin", call_id, invocation }];
    }
    const invocation = this.#invocations.get(call_id);
    this.#invocations.delete(call_id);
    const { result, error, durationMs } = event;
    const secs = Math.floor(durationMs / 1000);
    const duration = { secs, nanos: Math.round((durationMs - secs * 1000) * 1e6) };
    const wire =
      result === null
        ? { Err: error ?? "" }
        : {
            Ok: {
              content: result.content,
              structuredContent: result.structuredContent ?? null,
              isError: result.isError,
            },
          };
    return [{ type: "mcp_tool_call_end", call_id, invocation, duration, result: wire }];
  }
}
