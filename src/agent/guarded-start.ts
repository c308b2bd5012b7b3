import type { McpServers } from "../tools/index.js";
import type { ConversationOptions } from "./conversation-options.js";
import type { McpSession } from "./session-servers.js";

/**
 * Opens a conversation. If that throws, nothing of it is left: its sandbox was not started, and its MCP
 * servers are closed.
 */
export function guardedStart<Opened>(
  options: ConversationOptions,
  open: (options: ConversationOptions) => Opened,
): Opened {
  const { sandbox, mcpServers } = options;
  let isAllowed = false;
  const never = new Promise<never>(() => undefined);
  // A conversation calls this only after its constructor, so `isAllowed` is decided by then.
  const start = typeof sandbox === "function" ? () => (isAllowed ? sandbox() : never) : sandbox;
  const early: McpServers[] = [];
  const openServers = (session: McpSession, opener: NonNullable<typeof mcpServers>) => {
    const servers = opener(session);
    if (!isAllowed) early.push(servers);
    return servers;
  };
  try {
    const opened = open({
      ...options,
      sandbox: start,
      mcpServers: mcpServers && ((session) => openServers(session, mcpServers)),
    });
    isAllowed = true;
    return opened;
  } catch (error) {
    for (const servers of early) void servers.close();
    throw error;
  }
}
