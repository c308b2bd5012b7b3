import type { McpServerInput } from "../../agent/index.js";
import type { RequestedServer } from "./session-opener.js";

const MAX_NAME_CHARS = 64;

/**
 * Translates the MCP servers of an editor into settings as in config.toml. A program runs in a container of
 * its own without a network, never on the host: a server that needs more must be configured in config.toml.
 */
export function serversOf(requested: readonly RequestedServer[]): {
  servers: Record<string, McpServerInput>;
  warnings: string[];
} {
  const servers = new Map<string, McpServerInput>();
  const warnings: string[] = [];
  for (const server of requested) {
    const input = inputOf(server);
    if (input === null) warnings.push(`the MCP server ${server.name} is left out: brig does not speak SSE`);
    else servers.set(freeName(server.name, servers), input);
  }
  return { servers: Object.fromEntries(servers), warnings };
}

function inputOf(server: RequestedServer): McpServerInput | null {
  if ("command" in server) {
    const { command, args, env } = server;
    return { command, args, env: Object.fromEntries(env.map(({ name, value }) => [name, value])) };
  }
  if (server.type !== "http") return null;
  const { url, headers } = server;
  return { url, http_headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])) };
}

/**
 * Makes a name that config.toml allows and that is not taken, since an editor may use any name, even for two
 * servers.
 */
function freeName(name: string, taken: ReadonlyMap<string, unknown>): string {
  const words = name.replace(/[^A-Za-z0-9-]+/g, "_").replace(/^_|_$/g, "");
  const plain = words.slice(0, MAX_NAME_CHARS) || "server";
  if (!taken.has(plain)) return plain;
  for (let at = 2; ; at++) {
    const numbered = `${plain.slice(0, MAX_NAME_CHARS - 4)}_${at}`;
    if (!taken.has(numbered)) return numbered;
  }
}
