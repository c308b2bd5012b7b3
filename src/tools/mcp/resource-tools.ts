import { z } from "zod";
import { BrigError, isBrigError, messageWithHint } from "../../errors.js";
import { truncateText } from "../../sandbox/index.js";
import { type ArgumentsOf, defineTool, type OutputLimit } from "../define-tool.js";
import { failure, requireInput, type Tool, type ToolOutput } from "../tool.js";
import type { McpServers } from "./mcp-servers.js";

export interface McpResourceNeeds extends OutputLimit {
  /** Null without MCP servers. */
  readonly mcp: McpServers | null;
}

/** How many pages of each server are read for a list of all servers. */
const MAX_PAGES = 50;

/** Models send a blank string or null for an argument that they do not want to give. */
const optionalText = z
  .string()
  .transform((text) => text.trim() || undefined)
  .optional();

const listParameters = z.object({
  server: optionalText.describe("The server. Default: all servers."),
  cursor: optionalText.describe("The nextCursor of the page before, of the same server."),
});

const readParameters = z.object({
  server: optionalText.describe("The server, as list_mcp_resources names it."),
  uri: optionalText.describe("The URI of the resource, as list_mcp_resources gives it."),
});

type ListTool = Tool<ToolOutput, ArgumentsOf<typeof listParameters>>;

export function listMcpResourcesTool(needs: McpResourceNeeds): ListTool {
  return listTool(needs, {
    name: "list_mcp_resources",
    description:
      "Lists the resources of MCP servers, such as files and database schemas. Prefer them to a web search.",
    method: "resources/list",
    key: "resources",
    list: async (mcp, server, options) => {
      const { resources, nextCursor } = await mcp.listResources(server, options);
      return { entries: resources, nextCursor };
    },
  });
}

export function listMcpResourceTemplatesTool(needs: McpResourceNeeds): ListTool {
  return listTool(needs, {
    name: "list_mcp_resource_templates",
    description: "Lists the resource templates of MCP servers: URIs with parameters to fill in.",
    method: "resources/templates/list",
    key: "resourceTemplates",
    list: async (mcp, server, options) => {
      const { resourceTemplates, nextCursor } = await mcp.listResourceTemplates(server, options);
      return { entries: resourceTemplates, nextCursor };
    },
  });
}

export function readMcpResourceTool({
  mcp,
  truncation,
}: McpResourceNeeds): Tool<ToolOutput, ArgumentsOf<typeof readParameters>> {
  return defineTool({
    name: "read_mcp_resource",
    description: "Reads a resource of an MCP server.",
    parameters: readParameters,
    supportsParallel: true,
    changesNoFiles: true,
    async run({ server, uri }, { signal }) {
      if (mcp === null) return noServers();
      requireInput(server !== undefined, "server must be provided");
      requireInput(uri !== undefined, "uri must be provided");
      return await answered("resources/read", signal, async () => {
        requireServer(mcp, server ?? "");
        const { contents } = await mcp.readResource(server ?? "", uri ?? "", { signal });
        return truncateText(JSON.stringify({ server, uri, contents }), truncation);
      });
    },
  });
}

interface Listing {
  name: string;
  description: string;
  method: string;
  key: string;
  list(
    mcp: McpServers,
    server: string,
    options: { cursor?: string | undefined; signal?: AbortSignal | undefined },
  ): Promise<{ entries: readonly object[]; nextCursor: string | null }>;
}

function listTool({ mcp, truncation }: McpResourceNeeds, listing: Listing): ListTool {
  const { name, description, method, key, list } = listing;
  return defineTool({
    name,
    description,
    parameters: listParameters,
    supportsParallel: true,
    changesNoFiles: true,
    takesBlank: true,
    async run({ server, cursor }, { signal }) {
      if (mcp === null) return noServers();
      requireInput(
        cursor === undefined || server !== undefined,
        "cursor can only be used when a server is specified",
      );
      return await answered(method, signal, async () => {
        if (server === undefined) {
          const entries = await listAll(mcp, list, signal);
          return truncateText(JSON.stringify({ [key]: entries }), truncation);
        }
        requireServer(mcp, server);
        const { entries, nextCursor } = await list(mcp, server, { cursor, signal });
        const page = {
          server,
          [key]: entries.map((entry) => ({ server, ...entry })),
          ...(nextCursor === null ? {} : { nextCursor }),
        };
        return truncateText(JSON.stringify(page), truncation);
      });
    },
  });
}

/** Lists the entries of all servers, sorted by server. A server that fails is left out. */
async function listAll(
  mcp: McpServers,
  list: Listing["list"],
  signal: AbortSignal | undefined,
): Promise<object[]> {
  const names = mcp.servers.map(({ name }) => name).toSorted();
  const lists = await Promise.all(
    names.map(async (server) => {
      const found: object[] = [];
      let cursor: string | undefined;
      try {
        for (let page = 0; page < MAX_PAGES; page++) {
          const { entries, nextCursor } = await list(mcp, server, { cursor, signal });
          found.push(...entries.map((entry) => ({ server, ...entry })));
          if (nextCursor === null) break;
          cursor = nextCursor;
        }
      } catch (error) {
        if (signal?.aborted || !isServerFault(error)) throw error;
      }
      return found;
    }),
  );
  return lists.flat();
}

async function answered(
  method: string,
  signal: AbortSignal | undefined,
  ask: () => Promise<string>,
): Promise<ToolOutput> {
  try {
    return { content: await ask(), success: true };
  } catch (error) {
    if (signal?.aborted || !isServerFault(error)) throw error;
    return failure(`${method} failed: ${messageWithHint(error)}`);
  }
}

function isServerFault(error: unknown): error is BrigError {
  return isBrigError(error) && error.code.startsWith("mcp.");
}

function requireServer(mcp: McpServers, server: string): void {
  if (mcp.servers.some(({ name }) => name === server)) return;
  const names = mcp.servers.map(({ name }) => name).join(", ");
  throw new BrigError(`unknown MCP server '${server}'; the servers are ${names}`, { code: "mcp.failed" });
}

function noServers(): ToolOutput {
  return failure("no MCP server is configured in this session");
}
