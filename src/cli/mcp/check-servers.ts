import type { AgentSandbox, McpServerConfig } from "../../agent/index.js";
import { resolveRun, serverOpener } from "../../agent/index.js";
import type { AgentFlags, CliContext } from "../../command/index.js";
import { agentSettings, openSandbox, sessionHost } from "../../command/index.js";
import { messageWithHint } from "../../errors.js";
import type { McpServers } from "../../tools/index.js";

/** Whether a server has started, and the tools that it listed. All texts are untrusted. */
export interface CheckedServer {
  /** The reason why the server does not work, and the remedy. Null if it works. */
  error: string | null;
  tools: readonly { name: string; modelName: string; title: string | null; description: string }[];
}

/** Starts the servers as a session would, lists their tools, and ends them. */
export async function checkServers(
  servers: Readonly<Record<string, McpServerConfig>>,
  flags: AgentFlags,
  context: CliContext,
): Promise<Map<string, CheckedServer>> {
  const host = sessionHost(context);
  const run = await resolveRun(await agentSettings(flags, context), host, {
    usualApproval: "never",
    beginsSession: false,
  });
  const only = { ...run, config: { ...run.config, mcp_servers: withoutRequired(servers) } };
  const open = await serverOpener(only, host);
  if (open === null) return new Map();
  const isNeeded = Object.values(servers).some(({ enabled, sandbox }) => enabled && sandbox === "session");
  const sandbox: Promise<AgentSandbox> = isNeeded
    ? openSandbox(() => run.sandbox, context)
    : new Promise(() => undefined);
  sandbox.catch(() => undefined);
  const opened = open({ sandbox, setting: run.setting, onReceipt: () => undefined });
  try {
    await opened.ready({ signal: context.signal });
    return new Map(opened.servers.map(({ name }) => [name, checkedServer(opened, name)]));
  } finally {
    await opened.close();
    if (isNeeded) await (await sandbox.catch(() => null))?.close();
  }
}

/** What is known of a server that was started. */
export function checkedServer(opened: McpServers, name: string): CheckedServer {
  const error = opened.servers.find((server) => server.name === name)?.error ?? null;
  return {
    error: error && messageWithHint(error),
    tools: opened
      .tools()
      .filter(({ server }) => server === name)
      .map(({ name, modelName, title, description }) => ({ name, modelName, title, description })),
  };
}

/** A required server that fails would make `ready` reject. Here it is listed like any other that fails. */
function withoutRequired(
  servers: Readonly<Record<string, McpServerConfig>>,
): Record<string, McpServerConfig> {
  return Object.fromEntries(
    Object.entries(servers).map(([name, server]) => [name, { ...server, required: false }]),
  );
}
