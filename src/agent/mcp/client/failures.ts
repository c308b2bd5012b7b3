import { z } from "zod";
import { BrigError, isBrigError } from "../../../errors.js";
import { neutralise, neutraliseLine } from "../../../lib/terminal/terminal.js";
import { formatDuration } from "../../../lib/time/durations.js";
import { clipped } from "../../../sandbox/index.js";
import { httpStatus, type StartReport } from "./connection/connection.js";
import type { McpServerSettings } from "./server-settings.js";

const MAX_REASON_CHARS = 1000;
const MAX_CAUSES = 4;

const pageRequired = z.looseObject({
  code: z.literal(-32042),
  data: z.looseObject({
    elicitations: z.tuple([z.looseObject({ url: z.httpUrl().max(MAX_REASON_CHARS) })], z.unknown()),
  }),
});

export interface FailedStart {
  server: string;
  settings: McpServerSettings;
  report: StartReport;
  cause: unknown;
  isTimedOut: boolean;
  /** Why the server ended the connection; null if it did not. */
  fault: string | null;
}

/**
 * Names the server that did not start, the step that failed, the reason, and the last lines of its stderr.
 */
export function startError(failed: FailedStart): BrigError {
  const { server, settings, report, cause, isTimedOut, fault } = failed;
  const stages = {
    launch: settings.kind === "stdio" ? "starting its program" : "connecting",
    initialize: settings.kind === "stdio" ? "greeting it" : "connecting to it",
    "tools/list": "listing its tools",
  };
  const reason = isTimedOut
    ? `it took longer than ${formatDuration(settings.startupTimeoutMs)}`
    : (fault ?? reasonOf(cause));
  const what = `${stages[report.stage]} failed (${report.stage}): ${reason}`;
  return new BrigError(
    `the MCP server ${shownName(server)} did not start: ${what}${lastLines(report.lastLines())}`,
    { code: "mcp.start-failed", hint: startHint(settings, report, { cause, isTimedOut }), cause },
  );
}

function startHint(
  settings: McpServerSettings,
  { stage }: StartReport,
  { cause, isTimedOut }: { cause: unknown; isTimedOut: boolean },
): string {
  if (isBrigError(cause) && cause.hint !== undefined) return cause.hint;
  if (isTimedOut)
    return "if it only needs more time, for instance to install itself, raise its startup_timeout_sec";
  if (settings.kind === "http") return httpHint(cause) ?? "check its url, and whether the server is running";
  if (stage === "launch") return "check its command, and whether the program exists where the server runs";
  return "check its command, args and env; the program has to speak MCP on its standard input and output";
}

/** What a person can do about the HTTP status with which the server answered. */
function httpHint(error: unknown): string | undefined {
  const status = httpStatus(error);
  if (status === 401)
    return "it wants a token: set bearer_token_env_var to a variable that holds a valid one";
  if (status === 403) return "it refuses this token: check what the token may do";
  if (status === 404 || status === 405) return "check the path of its url: there is no MCP server at it";
  return undefined;
}

export interface FailedRequest {
  server: string;
  /** What was asked, such as "the tool search". */
  asked: string;
  cause: unknown;
  endReason: string | null;
  lines: readonly string[];
}

/** Names the server and the request that failed. `endReason` is null if the connection is still open. */
export function requestError({ server, asked, cause, endReason, lines }: FailedRequest): BrigError {
  if (endReason === null)
    return new BrigError(`${asked} of the MCP server ${shownName(server)} failed: ${reasonOf(cause)}`, {
      code: "mcp.failed",
      hint: pageHint(cause) ?? httpHint(cause),
      cause,
    });
  const what = `ended during ${asked}: ${endReason}`;
  return new BrigError(`the MCP server ${shownName(server)} ${what}${lastLines(lines)}`, {
    code: "mcp.failed",
    hint: "it is started again by the next call; this one may have been carried out",
    cause,
  });
}

/**
 * The error with which servers of 2025 refuse a call until the user has opened a page, for instance to log
 * in.
 */
function pageHint(cause: unknown): string | undefined {
  const parsed = pageRequired.safeParse(cause);
  if (!parsed.success) return undefined;
  return `open ${neutraliseLine(parsed.data.data.elicitations[0].url)}, then let the call be made again`;
}

function lastLines(lines: readonly string[]): string {
  return lines.length === 0 ? "" : ["\nIts last lines on stderr:", ...lines].join("\n  ");
}

export function timeoutError(server: string, asked: string, ms: number): BrigError {
  return new BrigError(
    `${asked} of the MCP server ${shownName(server)} took longer than ${formatDuration(ms)}`,
    {
      code: "mcp.timed-out",
      hint: "raise the server's tool_timeout_sec if this tool needs more time; the server may still be working on it",
    },
  );
}

/** Quotes the name of a server or tool, which can contain any characters, so that it is safe to show. */
export function shownName(server: string): string {
  return clipped(neutraliseLine(JSON.stringify(server)), 100);
}

/** The messages of an error and its causes, safe to show. Most of them come from the server. */
function reasonOf(error: unknown): string {
  const texts: string[] = [];
  for (let one = error, depth = 0; one !== undefined && depth < MAX_CAUSES; depth++) {
    const message = one instanceof Error ? one.message : String(one);
    const code = one instanceof Error && "code" in one ? one.code : undefined;
    const shown =
      typeof code === "number" ? `${message} (${code})` : message || String(code ?? "unknown error");
    if (!texts.some((text) => text.includes(shown))) texts.push(shown.slice(0, MAX_REASON_CHARS));
    one = one instanceof Error ? one.cause : undefined;
  }
  return clipped(neutralise(texts.join(": ")), MAX_REASON_CHARS);
}
