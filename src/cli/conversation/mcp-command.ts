import type { McpServerConfig } from "../../agent/index.js";
import { checkedServer } from "../mcp/check-servers.js";
import { describedServer, serverRows } from "../mcp/server-text.js";
import { notice } from "./screen/block.js";
import type { SlashParts } from "./slash-call.js";

/** `/mcp`: the servers of the configuration with what has become of them in this session, and their tools. */
export function showServers({ conversation, setup, context, show }: SlashParts): void {
  const servers = Object.entries(setup.config.mcp_servers);
  const { mcpServers: opened } = conversation;
  const rows = servers.flatMap(([name, server]: [string, McpServerConfig]) => {
    const state = opened?.servers.find((one) => one.name === name);
    const isStarting = state?.status === "starting";
    const check = opened === null || state === undefined || isStarting ? null : checkedServer(opened, name);
    const shown = describedServer(name, server, { variables: context?.environment.variables ?? {}, check });
    return serverRows(isStarting ? { ...shown, status: "starting" } : shown);
  });
  show(
    rows.length === 0
      ? notice("no MCP server is configured; see docs/mcp.md")
      : { kind: "report", title: "MCP servers", rows },
  );
}
