import { spawn } from "node:child_process";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { type OpenMcpServersOptions, openMcpServers } from "../../src/agent/mcp/client/open-mcp-servers.js";
import type { LaunchServer, ServerExit } from "../../src/agent/mcp/client/server-process.js";
import type {
  HttpServerSettings,
  McpServerSettings,
  StdioServerSettings,
} from "../../src/agent/mcp/client/server-settings.js";
import type { McpServers, McpTool } from "../../src/tools/mcp/mcp-servers.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Starts servers as plain child processes, in a process group each. */
export const launchChild: LaunchServer = async (_name, { command, args, env, cwd }, { signal }) => {
  const child = spawn(command, [...args], {
    cwd: cwd ?? root,
    env: { PATH: process.env.PATH, ...env },
    stdio: "pipe",
    detached: true,
  });
  const exited = new Promise<ServerExit>((resolve) => {
    child.once("error", (error) => resolve({ exitCode: null, signal: null, reason: error.message }));
    child.once("exit", (exitCode, how) => resolve({ exitCode, signal: how }));
  });
  const kill = async () => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // The group is gone.
    }
    await exited;
  };
  if (signal.aborted) await kill();
  signal.throwIfAborted();
  return { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, exited, kill };
};

/** The streams of a server that runs in the test's own process. */
export interface ServerStreams {
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  /** Aborts when the server's process would have ended. */
  signal: AbortSignal;
}

/** Runs servers in this process, for tests of what they say: each exits when its input ends. */
export function launchHere(serve: (streams: ServerStreams) => void): LaunchServer {
  return async () => {
    const over = new AbortController();
    const { signal } = over;
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const exited = new Promise<ServerExit>((resolve) =>
      signal.addEventListener("abort", () => resolve({ exitCode: 0, signal: null }), { once: true }),
    );
    const kill = async () => over.abort();
    stdin.once("end", kill);
    serve({ stdin, stdout, stderr, signal });
    return { stdin, stdout, stderr, exited, kill };
  };
}

const common = {
  required: false,
  startupTimeoutMs: 60_000,
  toolTimeoutMs: 60_000,
  enabledTools: null,
  disabledTools: [],
  supportsParallelToolCalls: false,
  defaultApproval: "auto" as const,
  toolApproval: {},
};

export function stdioSettings(
  command: string,
  args: readonly string[],
  changes: Partial<StdioServerSettings> & { env?: Record<string, string> } = {},
): StdioServerSettings {
  const { env = {}, ...rest } = changes;
  return { ...common, kind: "stdio", command: { command, args, env, cwd: null }, ...rest };
}

export function httpSettings(url: string, changes: Partial<HttpServerSettings> = {}): HttpServerSettings {
  return { ...common, kind: "http", url, bearerToken: null, headers: {}, ...changes };
}

/** One of the servers in test/fixtures/mcp-servers. */
export function fixtureServer(
  name: string,
  args: readonly string[] = [],
  changes: Partial<StdioServerSettings> = {},
): StdioServerSettings {
  const file = `${root}/test/fixtures/mcp-servers/${name}`;
  const program = name.endsWith(".ts") ? ["--import", "tsx", file] : [file];
  return stdioSettings(process.execPath, [...program, ...args], changes);
}

/** Registers what is done when a test has finished. A concurrent test has to give its own. */
type Finish = (end: () => Promise<void> | void) => void;

/** Servers that are closed when the test has finished. `warnings` collects what a user would read. */
export function testServers(
  configured: Record<string, McpServerSettings>,
  { finish = onTestFinished, ...options }: Partial<OpenMcpServersOptions> & { finish?: Finish } = {},
): { servers: McpServers; warnings: string[] } {
  const warnings: string[] = [];
  const servers = openMcpServers(configured, {
    launch: launchChild,
    version: "0.0.0",
    onWarning: (message) => warnings.push(message),
    ...options,
  });
  finish(() => servers.close());
  return { servers, warnings };
}

export function toolOf(servers: McpServers, name: string): McpTool {
  const tool = servers.tools().find((one) => one.name === name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  return tool;
}
