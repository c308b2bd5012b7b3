import type { Progress } from "@modelcontextprotocol/client";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { LONGEST_TIMER_MS } from "../../../lib/time/pause.js";
import type {
  McpApproval,
  McpCallOptions,
  McpPageOptions,
  McpProgress,
  McpResourceContents,
  McpResourcePage,
  McpResourceTemplatePage,
  McpResult,
  McpServerState,
  McpServers,
  McpTool,
} from "../../../tools/index.js";
import { shownName } from "./failures.js";
import { type McpRequest, McpServer, type McpServerOptions } from "./mcp-server.js";
import type { LaunchServer } from "./server-process.js";
import type { McpServerSettings } from "./server-settings.js";
import { modelNames } from "./tool-list/tool-names.js";

const MAX_ENTRIES = 1000;
const MAX_MESSAGE_CHARS = 1000;

export interface OpenMcpServersOptions {
  launch: LaunchServer;
  /** brig's own version. */
  version: string;
  /** Receives warnings for the user, without control sequences. */
  onWarning?: ((message: string) => void) | undefined;
}

const resultSchema = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })).nullish(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().nullish(),
});
type CallResult = z.infer<typeof resultSchema>;
const cursor = z
  .string()
  .nullish()
  .transform((value) => value ?? null);
const resourcesSchema = z.looseObject({
  resources: z.array(z.looseObject({ uri: z.string(), name: z.string().catch("") })).max(MAX_ENTRIES),
  nextCursor: cursor,
});
const templatesSchema = z.looseObject({
  resourceTemplates: z
    .array(z.looseObject({ uriTemplate: z.string(), name: z.string().catch("") }))
    .max(MAX_ENTRIES),
  nextCursor: cursor,
});
const contentsSchema = z.looseObject({
  contents: z.array(z.looseObject({ uri: z.string() })).max(MAX_ENTRIES),
});

/** Starts all servers in the background, side by side. */
export function openMcpServers(
  configured: Readonly<Record<string, McpServerSettings>>,
  options: OpenMcpServersOptions,
): McpServers {
  return new OpenServers(configured, options);
}

class OpenServers implements McpServers {
  readonly #servers: readonly McpServer[];
  readonly #listeners = new Set<() => void>();
  readonly #started: Promise<void>;
  #tools: readonly McpTool[] | undefined;
  #toolsText = "[]";

  constructor(
    configured: Readonly<Record<string, McpServerSettings>>,
    { launch, version, onWarning }: OpenMcpServersOptions,
  ) {
    const options: McpServerOptions = {
      launch,
      version,
      onWarning: onWarning ?? (() => undefined),
      onChange: () => this.#change(),
    };
    this.#servers = Object.entries(configured).map(
      ([name, settings]) => new McpServer(name, settings, options),
    );
    this.#started = this.#start();
    this.#started.catch(() => undefined);
  }

  get servers(): readonly McpServerState[] {
    return this.#servers.map(({ state }) => state);
  }

  async ready({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    await beforeAbort(this.#started, signal);
  }

  tools(): readonly McpTool[] {
    this.#tools ??= toolsOf(this.#servers);
    return this.#tools;
  }

  onToolsChanged(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  async call(
    tool: McpTool,
    args: Readonly<Record<string, unknown>>,
    { signal, onProgress, elicit }: McpCallOptions = {},
  ): Promise<McpResult> {
    const server = this.#server(tool.server);
    const result = await server.request<CallResult>({
      asked: `the tool ${shownName(tool.name)}`,
      limitMs: server.settings.toolTimeoutMs,
      signal,
      elicit,
      send: (client, limit) => {
        const params = { name: tool.name, arguments: args };
        const common = { ...within(limit), ...(onProgress && { onprogress: progressTo(onProgress) }) };
        // Over HTTP, servers of 2026-07-28 may require some arguments in headers as well, which only
        // `callTool` adds.
        if (server.settings.kind === "http" && client.getProtocolEra() === "modern") {
          const inputSchema = { ...tool.rawInputSchema, type: "object" as const };
          return client.callTool(params, { ...common, toolDefinition: { name: tool.name, inputSchema } });
        }
        return client.request({ method: "tools/call", params }, resultSchema, common);
      },
    });
    const { content, structuredContent, isError } = result;
    return { content: content ?? [], structuredContent, isError: isError === true };
  }

  async listResources(name: string, { cursor, signal }: McpPageOptions = {}): Promise<McpResourcePage> {
    const params = cursor === undefined ? {} : { cursor };
    const { resources, nextCursor } = await this.#ask(name, {
      asked: "resources/list",
      signal,
      send: (client, limit) =>
        client.request({ method: "resources/list", params }, resourcesSchema, within(limit)),
    });
    return { resources, nextCursor };
  }

  async listResourceTemplates(
    name: string,
    { cursor, signal }: McpPageOptions = {},
  ): Promise<McpResourceTemplatePage> {
    const params = cursor === undefined ? {} : { cursor };
    const { resourceTemplates, nextCursor } = await this.#ask(name, {
      asked: "resources/templates/list",
      signal,
      send: (client, limit) =>
        client.request({ method: "resources/templates/list", params }, templatesSchema, within(limit)),
    });
    return { resourceTemplates, nextCursor };
  }

  async readResource(
    name: string,
    uri: string,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<{ contents: readonly McpResourceContents[] }> {
    const { contents } = await this.#ask(name, {
      asked: "resources/read",
      signal,
      send: (client, limit) =>
        client.request({ method: "resources/read", params: { uri } }, contentsSchema, within(limit)),
    });
    return { contents };
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  async #start(): Promise<void> {
    const starts = await Promise.allSettled(this.#servers.map((server) => server.running()));
    const failed = starts.find(
      (start, index) => start.status === "rejected" && this.#servers[index]?.settings.required,
    );
    if (failed?.status === "rejected") throw failed.reason;
  }

  #change(): void {
    const before = this.#toolsText;
    this.#tools = toolsOf(this.#servers);
    this.#toolsText = JSON.stringify(this.#tools);
    if (this.#toolsText !== before) for (const listener of this.#listeners) listener();
  }

  #server(name: string): McpServer {
    const server = this.#servers.find((one) => one.name === name);
    if (server !== undefined) return server;
    const known = this.#servers.map((one) => shownName(one.name)).join(", ");
    throw new BrigError(`there is no MCP server ${shownName(name)}`, {
      code: "mcp.failed",
      hint: known === "" ? "no MCP servers are configured" : `there are: ${known}`,
    });
  }

  async #ask<T>(name: string, request: Pick<McpRequest<T>, "asked" | "signal" | "send">): Promise<T> {
    const server = this.#server(name);
    return await server.request({ ...request, limitMs: server.settings.toolTimeoutMs, elicit: undefined });
  }
}

function progressTo(onProgress: (progress: McpProgress) => void): (progress: Progress) => void {
  return ({ progress, total, message }) =>
    onProgress({ progress, total: total ?? null, message: message?.slice(0, MAX_MESSAGE_CHARS) ?? null });
}

/** Turns the SDK's own time limit off: unlike the signal's, it cannot be paused while a person is asked. */
function within(signal: AbortSignal): { signal: AbortSignal; timeout: number } {
  return { signal, timeout: LONGEST_TIMER_MS };
}

function toolsOf(servers: readonly McpServer[]): McpTool[] {
  const listed = servers.flatMap(({ name, settings, tools }) =>
    tools.map((tool) => ({ server: name, settings, tool })),
  );
  const names = modelNames(listed.map(({ server, tool }) => ({ server, tool: tool.name })));
  return listed
    .map(({ server, settings, tool }, index) => ({
      ...tool,
      server,
      modelName: names[index] ?? "",
      supportsParallel: settings.supportsParallelToolCalls,
      approval: approvalOf(settings, tool.name),
    }))
    .toSorted((a, b) => inOrder(a.server, b.server) || inOrder(a.name, b.name));
}

function approvalOf({ toolApproval, defaultApproval }: McpServerSettings, tool: string): McpApproval {
  return (Object.hasOwn(toolApproval, tool) ? toolApproval[tool] : undefined) ?? defaultApproval;
}

function inOrder(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
