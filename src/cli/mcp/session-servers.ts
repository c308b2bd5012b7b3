import type { McpServerConfig, McpServerInput, McpSession } from "../../agent/index.js";
import { parseMcpServers } from "../../agent/index.js";
import type { SandboxMode, SandboxSettings } from "../../sandbox/index.js";
import type { McpServers } from "../../tools/index.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { readVersion } from "../../version.js";
import type { CliContext } from "../context.js";
import { describeError } from "../display/error-text.js";
import { fitted, say } from "../render.js";
import { connectEngine } from "../setup/early-engine.js";
import { inMode, type RunSettings } from "../setup/run-settings.js";
import { configuredServers } from "./configured-servers.js";

/** Opens the servers of a session, for `openConversation`. */
export type ServerOpener = (session: McpSession) => McpServers;

/**
 * Returns the opener of the configured servers and of further ones; null if no server is enabled. The MCP
 * client is loaded only if there is one. Error: `config.invalid`.
 */
export async function serverOpener(
  run: RunSettings,
  context: CliContext,
  { further = {}, waitsForSandbox = false }: ServerOptions = {},
): Promise<ServerOpener | null> {
  const servers: Record<string, McpServerConfig> = { ...run.config.mcp_servers, ...parseMcpServers(further) };
  const { settings, places, warnings } = configuredServers(servers, context.environment);
  for (const warning of warnings) await say(context.stderr, `brig: ${neutralise(warning)}\n`);
  if (Object.keys(settings).length === 0) return null;
  const { openMcpServers, serverLauncher } = await import("../../agent/index.js");
  const { environment, stderr } = context;
  return ({ sandbox, setting, onReceipt }) => {
    const launch = serverLauncher(places, {
      engine: () => connectEngine({ env: environment }),
      settings: async () => {
        if (waitsForSandbox) await sandbox;
        return await settingsIn(run, setting.sandboxMode);
      },
      sandbox,
      directory: setting.cwd,
      variables: environment.variables,
      onReceipt,
      onWarning: (warning) => {
        stderr.write(fitted(stderr, describeError(warning, { showsCauses: false })));
      },
    });
    return openMcpServers(settings, {
      launch,
      version: readVersion(),
      onWarning: (message) => {
        stderr.write(fitted(stderr, `brig: ${message}\n`));
      },
    });
  };
}

interface ServerOptions {
  /** With the keys of config.toml. Default: none. */
  further?: Readonly<Record<string, McpServerInput>> | undefined;
  /** Whether containers of servers start after the session's, which makes their workspace. Default: false. */
  waitsForSandbox?: boolean | undefined;
}

/**
 * The user may change the mode during a conversation. Servers that start later then see the workspace in that
 * mode.
 */
async function settingsIn(run: RunSettings, mode: string): Promise<SandboxSettings> {
  return mode === run.setting.sandboxMode ? run.sandbox : (await inMode(run, mode as SandboxMode)).sandbox;
}
