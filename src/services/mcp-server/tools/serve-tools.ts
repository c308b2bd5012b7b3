import {
  type CallToolRequestParams,
  type CallToolResult,
  type Tool as ListedTool,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { OpenClient, ServedClient } from "../served-client.js";
import { callResult } from "./call-result.js";
import { listedTools, withSandboxArgument } from "./listed-tools.js";
import { OutputProgress } from "./output-progress.js";
import { type CallOptions, SandboxCalls } from "./sandbox-calls.js";
import { SandboxCount } from "./sandbox-count.js";
import type { ToolService } from "./served-sandbox.js";
import { CLOSE_SANDBOX, OPEN_SANDBOX, SharedSandboxes, sandboxTools } from "./shared-sandboxes.js";

const DEFAULT_MAX_SANDBOXES = 16;

/** What one client, or all clients without a session together, can list and call. */
interface CallableTools {
  tools: ListedTool[];
  call(name: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallToolResult>;
}

/** Serves the sandboxed tools. What the clients have opened is closed with them. */
export function serveTools(service: ToolService): OpenClient {
  const count = new SandboxCount(service.maxSandboxes ?? DEFAULT_MAX_SANDBOXES);
  const tools = listedTools(service);
  return ({ isShared }) =>
    isShared ? sharedClient(service, count, tools) : ownClient(service, count, tools);
}

function ownClient(service: ToolService, count: SandboxCount, tools: ListedTool[]): ServedClient {
  const calls = new SandboxCalls(service, count);
  const callable: CallableTools = {
    tools,
    call: async (name, args, options) => callResult(await calls.call(name, args, options)),
  };
  return { createServer: () => toolServer(service, callable), close: async () => void (await calls.close()) };
}

function sharedClient(service: ToolService, count: SandboxCount, tools: ListedTool[]): ServedClient {
  const sandboxes = new SharedSandboxes(service, count);
  const callable: CallableTools = {
    tools: [...sandboxTools, ...withSandboxArgument(tools)],
    async call(name, args, options) {
      if (name === OPEN_SANDBOX) return await sandboxes.open(options.signal);
      if (name === CLOSE_SANDBOX) return callResult(await sandboxes.closeOne(args.sandbox));
      return callResult(await sandboxes.call(name, args, options));
    },
  };
  return { createServer: () => toolServer(service, callable), close: () => sandboxes.close() };
}

function toolServer(service: ToolService, { tools, call }: CallableTools): Server {
  const server = new Server(
    { name: "brig", title: "brig sandbox", version: service.version },
    { capabilities: { tools: {} }, instructions: instructions(service) },
  );
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    requireTool(params, tools);
    return await callWithProgress(params, context, call);
  });
  return server;
}

/** The protocol has an error of its own for tools that are not listed. */
function requireTool({ name }: CallToolRequestParams, tools: readonly ListedTool[]): void {
  if (tools.some((tool) => tool.name === name)) return;
  const names = tools.map((tool) => tool.name).join(", ");
  throw new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `there is no tool ${JSON.stringify(name.slice(0, 200))}: the tools are ${names}`,
  );
}

async function callWithProgress(
  { name, arguments: args = {} }: CallToolRequestParams,
  { mcpReq }: ServerContext,
  call: CallableTools["call"],
): Promise<CallToolResult> {
  using progress = new OutputProgress(mcpReq);
  return await call(name, args, { signal: mcpReq.signal, onOutput: progress.push });
}

function instructions({ cwd, hasNetwork, canWrite }: ToolService): string {
  const files = canWrite ? "can be read and changed" : "can be read, not changed";
  return [
    `These tools work in a container. The files in ${cwd} are the user's own, and ${files}; everything else is the container's.`,
    hasNetwork ? "Commands have the network." : "Commands have no network.",
    "Nothing can leave the container: a call that asks for it is refused.",
  ].join(" ");
}
