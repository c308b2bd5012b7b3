import type { McpServerConfig } from "../../agent/index.js";
import { missingVariable, startupTimeoutMs } from "../../agent/index.js";
import type { Environment } from "../../lib/env.js";
import { shellQuote } from "../../lib/shell-quote.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { clipped } from "../../sandbox/index.js";
import type { CheckedServer } from "./check-servers.js";

const MASK = "*****";
const CELL_CHARS = 200;

/** A server as `--json` prints it, with the same names as in Codex. Values that may be secrets are masked. */
export type DescribedServer = ReturnType<typeof describedServer>;

export function describedServer(
  name: string,
  server: McpServerConfig,
  { variables, check }: { variables: Environment["variables"]; check: CheckedServer | null },
) {
  const isHttp = server.command === undefined;
  return {
    name,
    enabled: server.enabled,
    required: server.required,
    transport: isHttp ? httpTransport(server) : stdioTransport(server),
    /** The place where a stdio server runs. */
    sandbox: isHttp ? null : server.sandbox,
    image: server.image ?? null,
    network: isHttp || server.sandbox !== "own" ? null : server.network,
    startup_timeout_sec: startupTimeoutMs(server) / 1000,
    tool_timeout_sec: server.tool_timeout_sec,
    enabled_tools: server.enabled_tools ?? null,
    disabled_tools: server.disabled_tools,
    status: statusOf(server, { variables, check }),
    tools: check?.tools ?? null,
  };
}

function stdioTransport({ command, args, env, env_vars, cwd }: McpServerConfig) {
  return { type: "stdio", command, args, env: masked(env), env_vars, cwd: cwd ?? null } as const;
}

function httpTransport(server: McpServerConfig) {
  return {
    type: "streamable_http",
    url: shownUrl(server.url ?? ""),
    bearer_token_env_var: server.bearer_token_env_var ?? null,
    http_headers: masked(server.http_headers),
    env_http_headers: server.env_http_headers,
  } as const;
}

function masked(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.keys(values).map((name) => [name, MASK]));
}

/** A URL may contain a password or a key. */
function shownUrl(text: string): string {
  const url = new URL(text);
  if (url.username === "" && url.password === "" && url.search === "") return text;
  return `${url.protocol}//${url.host}${url.pathname}?${MASK}`;
}

function statusOf(
  server: McpServerConfig,
  { variables, check }: { variables: Environment["variables"]; check: CheckedServer | null },
): string {
  if (!server.enabled) return "disabled";
  const missing = missingVariable(server, variables);
  if (missing !== null) return `left out: ${missing} is not set`;
  if (check === null) return "enabled";
  const { error, tools } = check;
  return error ?? `works, with ${tools.length} ${tools.length === 1 ? "tool" : "tools"}`;
}

export function listRow(server: DescribedServer): string[] {
  const [status = ""] = server.status.split("\n", 1);
  return [server.name, placeText(server), addressText(server), status].map(cell);
}

/** Rows about a server. A status of several lines has a row for each line. */
export function detailRows(server: DescribedServer): string[][] {
  const { transport, status, tools, network, image } = server;
  const [first = "", ...more] = status.split("\n");
  const rows: [string, string][] = [
    ["name", server.name],
    ["runs in", placeText(server)],
    [transport.type === "stdio" ? "command" : "url", addressText(server)],
    ...(transport.type === "stdio"
      ? [
          ["environment", [...names(transport.env), ...transport.env_vars].join(", ") || "none"] as [
            string,
            string,
          ],
          ["cwd", transport.cwd ?? "the workspace"] as [string, string],
        ]
      : [["headers", names(transport.http_headers).join(", ") || "none"] as [string, string]]),
    ...(network === null ? [] : [["network", network] as [string, string]]),
    ...(image === null ? [] : [["image", image] as [string, string]]),
    ["required", server.required ? "yes" : "no"],
    ["timeouts", `start ${server.startup_timeout_sec} s, call ${server.tool_timeout_sec} s`],
    ["status", first],
    ...more.map((line): [string, string] => ["", line]),
    ...(tools ?? []).map(({ modelName, title, description }): [string, string] => [
      modelName,
      title ?? description.split("\n", 1)[0] ?? "",
    ]),
  ];
  return rows.map((row) => row.map(cell));
}

/** Rows about a server in a conversation: its status, where it runs, and its tools. */
export function serverRows(server: DescribedServer): (readonly [string, string])[] {
  const [first = "", ...more] = server.status.split("\n");
  const rows: (readonly [string, string])[] = [
    [server.name, first],
    ...more.map((line) => ["", line] as const),
    ["", `${placeText(server)} · ${addressText(server)}`],
    ...(server.tools ?? []).map(({ modelName, title, description }) => {
      const about = title ?? description.split("\n", 1)[0] ?? "";
      return ["", about === "" ? modelName : `${modelName} – ${about}`] as const;
    }),
  ];
  return rows.map(([name, text]) => [cell(name), cell(text)] as const);
}

function names(values: Readonly<Record<string, string>>): string[] {
  return Object.keys(values).map((name) => `${name}=${MASK}`);
}

const places = {
  own: "own container",
  session: "the session's sandbox",
  host: "this machine",
} as const;

function placeText({ sandbox }: DescribedServer): string {
  return sandbox === null ? "elsewhere, over HTTP" : places[sandbox];
}

function addressText({ transport }: DescribedServer): string {
  return transport.type === "stdio"
    ? shellQuote([transport.command ?? "", ...transport.args])
    : transport.url;
}

function cell(text: string): string {
  return neutraliseLine(clipped(text, CELL_CHARS));
}
