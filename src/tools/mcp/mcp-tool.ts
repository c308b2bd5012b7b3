import { BrigError, isBrigError, messageWithHint } from "../../errors.js";
import { truncateParts, truncateText } from "../../sandbox/index.js";
import type { OutputLimit, Reviewed } from "../define-tool.js";
import type { RefusalReason } from "../review/approval.js";
import { failure, type Tool, type ToolCallOptions, type ToolOutput } from "../tool.js";
import type { Elicit, ElicitAnswer, McpResult, McpServers, McpTool } from "./mcp-servers.js";
import { mcpResultOutput } from "./result-output.js";

export interface McpToolNeeds extends Reviewed, OutputLimit {
  /** Answers questions of servers. Null if nobody can. */
  readonly elicit: Elicit | null;
}

/** A tool of an MCP server as a tool of the session. */
export function mcpTool(servers: McpServers, tool: McpTool, needs: McpToolNeeds): Tool {
  const { modelName: name, description, supportsParallel } = tool;
  return {
    name,
    description,
    supportsParallel,
    takesBlank: true,
    spec: { type: "function", name, description, strict: false, parameters: tool.inputSchema },
    async execute(args, call = {}) {
      call.signal?.throwIfAborted();
      const input = objectOf(args);
      const { server, name: toolName, title, annotations, approval } = tool;
      const verdict = await needs.review.review(
        {
          kind: "mcp-call",
          tool: name,
          server,
          name: toolName,
          title,
          arguments: input,
          annotations,
          approval,
        },
        call,
      );
      if (verdict.kind === "run") return await callTool(servers, tool, { input, call, needs });
      const text = refusalText(verdict.reason);
      call.onActivity?.({ kind: "mcp-call-started", server, tool: toolName, arguments: input });
      call.onActivity?.({ kind: "mcp-call-ended", result: null, error: text, durationMs: 0 });
      return failure(text);
    },
  };
}

function objectOf(args: unknown): Readonly<Record<string, unknown>> {
  if (args === undefined || args === null) return {};
  if (typeof args === "object" && !Array.isArray(args)) return args as Record<string, unknown>;
  throw new BrigError("failed to parse function arguments: they must be a JSON object", {
    code: "tool.invalid-input",
  });
}

/** The words are those of Codex, since models know them. */
function refusalText(reason: RefusalReason): string {
  return reason.by === "user"
    ? "user rejected MCP tool call"
    : `user cancelled MCP tool call: ${reason.text}`;
}

async function callTool(
  servers: McpServers,
  tool: McpTool,
  {
    input,
    call,
    needs,
  }: { input: Readonly<Record<string, unknown>>; call: ToolCallOptions; needs: McpToolNeeds },
): Promise<ToolOutput> {
  const startedAt = performance.now();
  const ended = (result: McpResult | null, error: string | null) => {
    const durationMs = performance.now() - startedAt;
    call.onActivity?.({ kind: "mcp-call-ended", result, error, durationMs });
    return durationMs;
  };
  call.onActivity?.({ kind: "mcp-call-started", server: tool.server, tool: tool.name, arguments: input });
  try {
    const result = await servers.call(tool, input, {
      signal: call.signal,
      onProgress: (progress) => call.onActivity?.({ kind: "mcp-call-progress", ...progress }),
      elicit: needs.elicit === null ? undefined : announced(needs.elicit, tool.server, call),
    });
    return resultOutput(result, { durationMs: ended(result, null), needs });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const durationMs = ended(null, message);
    if (call.signal?.aborted || !isBrigError(error) || !error.code.startsWith("mcp.")) throw error;
    return failure(`${heading(durationMs)}\n${truncateText(messageWithHint(error), needs.truncation)}`);
  }
}

/**
 * Reports when the person is asked and when they have answered, so that the display draws nothing over the
 * question.
 */
function announced(elicit: Elicit, server: string, call: ToolCallOptions): Elicit {
  return async (question, options) => {
    const askedAt = performance.now();
    let action: ElicitAnswer["action"] = "cancel";
    call.onActivity?.({ kind: "mcp-question-asked", server });
    try {
      const answer = await elicit(question, options);
      action = answer.action;
      return answer;
    } finally {
      const waitedMs = performance.now() - askedAt;
      call.onActivity?.({ kind: "mcp-question-answered", server, action, waitedMs });
    }
  };
}

function resultOutput(
  result: McpResult,
  { durationMs, needs: { truncation } }: { durationMs: number; needs: McpToolNeeds },
): ToolOutput {
  const { content, parts } = mcpResultOutput(result);
  const first = heading(durationMs);
  return {
    content: `${first}\n${truncateText(content, truncation)}`,
    success: !result.isError,
    ...(parts === undefined
      ? {}
      : { parts: [{ type: "input_text", text: first }, ...truncateParts(parts, truncation)] }),
  };
}

/** The first lines of the output. Codex has the same, so models know them. */
function heading(durationMs: number): string {
  return `Wall time: ${(durationMs / 1000).toFixed(4)} seconds\nOutput:`;
}
