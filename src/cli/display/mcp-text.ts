import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { clipped } from "../../sandbox/index.js";
import type { McpProgress } from "../../tools/index.js";

const MESSAGE_CHARS = 160;

/** The last progress that a server has reported for a call, safe for a terminal. */
export function progressText({ progress, total, message }: McpProgress): string {
  const amount = total === null ? String(progress) : `${progress}/${total}`;
  return message === null ? amount : `${amount} ${neutraliseLine(clipped(message, MESSAGE_CHARS))}`;
}

export function startingText(servers: readonly string[]): string {
  const names = servers.map((name) => neutraliseLine(name)).join(", ");
  return `waiting for the MCP ${servers.length === 1 ? "server" : "servers"} ${names}`;
}
