import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { openMcpServers } from "../../src/agent/mcp/client/open-mcp-servers.js";
import type { McpServerSettings } from "../../src/agent/mcp/client/server-settings.js";
import { serverLauncher } from "../../src/agent/mcp/launch/launch-servers.js";
import type { McpServers } from "../../src/tools/mcp/mcp-servers.js";

/** The server of test/fixtures that runs with Node alone, wherever it is copied to. */
export const plainServer = fileURLToPath(new URL("../fixtures/plain-mcp-server.mjs", import.meta.url));

export interface PlainServer {
  tools?: readonly object[];
  count?: number;
  stderr?: string;
  exitCode?: number;
  stubborn?: boolean;
  resources?: boolean;
  settings?: Partial<McpServerSettings>;
}

/** Real servers, as processes of this machine, which end with the test. */
export function openPlainServers(servers: Readonly<Record<string, PlainServer>>): McpServers {
  const host = { kind: "host" as const };
  const never = () => Promise.reject(new Error("these servers need no container"));
  const launch = serverLauncher(Object.fromEntries(Object.keys(servers).map((name) => [name, host])), {
    engine: never,
    settings: never,
    sandbox: new Promise(() => undefined),
    directory: "/tmp",
    variables: { PATH: process.env.PATH ?? "" },
  });
  const configured = Object.entries(servers).map(([name, { settings, ...behaviour }]) => [
    name,
    { ...settingsOf(behaviour), ...settings },
  ]);
  const opened = openMcpServers(Object.fromEntries(configured), { launch, version: "1" });
  onTestFinished(() => opened.close());
  return opened;
}

function settingsOf(behaviour: Omit<PlainServer, "settings">): McpServerSettings {
  return {
    kind: "stdio",
    command: {
      command: process.execPath,
      args: [plainServer, JSON.stringify(behaviour)],
      env: {},
      cwd: null,
    },
    required: false,
    startupTimeoutMs: 60_000,
    toolTimeoutMs: 60_000,
    enabledTools: null,
    disabledTools: [],
    supportsParallelToolCalls: false,
    defaultApproval: "auto",
    toolApproval: {},
  };
}
