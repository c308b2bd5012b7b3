import type { Proxies } from "../../../lib/proxy/proxies.js";
import type { McpApproval } from "../../../tools/index.js";

/** The settings of one server. */
export type McpServerSettings = StdioServerSettings | HttpServerSettings;

export interface StdioServerSettings extends CommonServerSettings {
  kind: "stdio";
  command: ServerCommand;
}

export interface HttpServerSettings extends CommonServerSettings {
  kind: "http";
  url: string;
  /** The token itself. It is sent to the origin of `url` only. */
  bearerToken: string | null;
  /** Further headers of every request, sent to the origin of `url` only. */
  headers: Readonly<Record<string, string>>;
  /** Through which requests are sent. Default: none. */
  proxies?: Proxies | undefined;
}

interface CommonServerSettings {
  /** Whether the session fails if the server does not start. */
  required: boolean;
  startupTimeoutMs: number;
  /** How long one call may take. Progress that the server reports does not extend it. */
  toolTimeoutMs: number;
  /** Null: all tools. */
  enabledTools: readonly string[] | null;
  disabledTools: readonly string[];
  supportsParallelToolCalls: boolean;
  defaultApproval: McpApproval;
  /** Approval of single tools, by the name that the server gives them. */
  toolApproval: Readonly<Record<string, McpApproval>>;
}

/** The same as in Codex. */
export const DEFAULT_STARTUP_TIMEOUT_MS = 30_000;

/** How a stdio server is started. Its paths are paths of the place where `LaunchServer` starts it. */
export interface ServerCommand {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  /** A relative path starts at the session's working directory. Null for that directory itself. */
  cwd: string | null;
}
