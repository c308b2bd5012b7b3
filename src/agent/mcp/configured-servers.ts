import { BrigError } from "../../errors.js";
import type { Environment } from "../../lib/env.js";
import { readProxies } from "../../lib/proxy/proxies.js";
import type { SandboxMode, SandboxSettings } from "../../sandbox/index.js";
import { connectEngine } from "../../sandbox/index.js";
import type { McpServers } from "../../tools/index.js";
import { readVersion } from "../../version.js";
import type { Config, McpServerConfig } from "../config/config-schema.js";
import { type McpServerInput, parseMcpServers } from "../config/mcp-servers-schema.js";
import type { SessionHost } from "../open/agent-settings.js";
import { inMode, type RunSettings } from "../open/run-settings.js";
import type { McpSession } from "../session-servers.js";
import type { ServerPlace } from "./client/server-process.js";
import { DEFAULT_STARTUP_TIMEOUT_MS, type McpServerSettings } from "./client/server-settings.js";

/** Opens the servers of a session, for `openConversation`. */
export type ServerOpener = (session: McpSession) => McpServers;

/**
 * Returns the opener of the configured servers and of further ones; null if no server is enabled. The MCP
 * client is loaded only if there is one. Error: `config.invalid`.
 */
export async function serverOpener(
  run: RunSettings,
  { environment, warn }: Pick<SessionHost, "environment" | "warn">,
  { further = {}, waitsForSandbox = false }: ServerOptions = {},
): Promise<ServerOpener | null> {
  const servers: Record<string, McpServerConfig> = { ...run.config.mcp_servers, ...parseMcpServers(further) };
  const { settings, places, warnings } = configuredServers(servers, environment);
  for (const warning of warnings) await warn(warning);
  if (Object.keys(settings).length === 0) return null;
  const [{ openMcpServers }, { serverLauncher }] = await Promise.all([
    import("./client/open-mcp-servers.js"),
    import("./launch/launch-servers.js"),
  ]);
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
      onWarning: (warning) => void warn(warning),
    });
    return openMcpServers(settings, {
      launch,
      version: readVersion(),
      onWarning: (message) => void warn(message),
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

/** The servers to start. */
interface ConfiguredServers {
  settings: Record<string, McpServerSettings>;
  /** The places where the stdio servers among them run. */
  places: Record<string, ServerPlace>;
  /** Texts for the user: which servers are left out, and which run uncontained. */
  warnings: string[];
}

/**
 * Converts the configuration of the enabled servers, and reads the environment variables that it names. A
 * server whose token is not set is left out with a warning. Error: `config.invalid` if that server is
 * required.
 */
function configuredServers(
  servers: Config["mcp_servers"],
  { variables }: Pick<Environment, "variables">,
): ConfiguredServers {
  const configured: ConfiguredServers = { settings: {}, places: {}, warnings: [] };
  for (const [name, server] of Object.entries(servers)) {
    if (!server.enabled) continue;
    const missing = missingVariable(server, variables);
    if (missing !== null) {
      configured.warnings.push(withoutToken(name, missing, server));
      continue;
    }
    configured.settings[name] = settingsOf(server, variables);
    if (server.command === undefined) continue;
    configured.places[name] = placeOf(server);
    if (server.sandbox === "host")
      configured.warnings.push(
        `the MCP server ${name} runs on this machine, where nothing contains it (sandbox = "host")`,
      );
  }
  return configured;
}

/** The first variable for a bearer token or a header that is not set; null if there is none. */
export function missingVariable(
  { bearer_token_env_var: token, env_http_headers: headers }: McpServerConfig,
  variables: Environment["variables"],
): string | null {
  const needed = [...(token === undefined ? [] : [token]), ...Object.values(headers)];
  return needed.find((name) => variables[name] === undefined) ?? null;
}

function withoutToken(name: string, variable: string, { required }: McpServerConfig): string {
  const message = `the MCP server ${name} is left out: the environment variable ${variable} is not set`;
  if (!required) return message;
  throw new BrigError(
    `the MCP server ${name} is required, but the environment variable ${variable} is not set`,
    {
      code: "config.invalid",
      hint: `set ${variable}, or set required = false`,
    },
  );
}

function settingsOf(server: McpServerConfig, variables: Environment["variables"]): McpServerSettings {
  const common = {
    required: server.required,
    startupTimeoutMs: startupTimeoutMs(server),
    toolTimeoutMs: server.tool_timeout_sec * 1000,
    enabledTools: server.enabled_tools ?? null,
    disabledTools: server.disabled_tools,
    supportsParallelToolCalls: server.supports_parallel_tool_calls,
    defaultApproval: server.default_tools_approval_mode ?? "auto",
    toolApproval: Object.fromEntries(
      Object.entries(server.tools).flatMap(([tool, { approval_mode: mode }]) =>
        mode === undefined ? [] : [[tool, mode]],
      ),
    ),
  };
  const { command, url = "", args, cwd } = server;
  if (command !== undefined)
    return {
      ...common,
      kind: "stdio",
      command: { command, args, env: environmentOf(server, variables), cwd: cwd ?? null },
    };
  const fromVariables = Object.entries(server.env_http_headers).map(([header, name]) => [
    header,
    variables[name] ?? "",
  ]);
  const token = server.bearer_token_env_var;
  return {
    ...common,
    kind: "http",
    url,
    bearerToken: token === undefined ? null : (variables[token] ?? null),
    headers: { ...server.http_headers, ...Object.fromEntries(fromVariables) },
    proxies: readProxies(variables),
  };
}

/** A value in `env` wins over a variable of this machine that `env_vars` names. */
function environmentOf(
  { env, env_vars: names }: McpServerConfig,
  variables: Environment["variables"],
): Record<string, string> {
  const passed = names.flatMap((name) => (variables[name] === undefined ? [] : [[name, variables[name]]]));
  return { ...Object.fromEntries(passed), ...env };
}

export function startupTimeoutMs({
  startup_timeout_sec: seconds,
  startup_timeout_ms: milliseconds,
}: McpServerConfig): number {
  if (seconds !== undefined) return seconds * 1000;
  return milliseconds ?? DEFAULT_STARTUP_TIMEOUT_MS;
}

function placeOf({ sandbox, image, network }: McpServerConfig): ServerPlace {
  return sandbox === "own" ? { kind: "own", image: image ?? null, network } : { kind: sandbox };
}
