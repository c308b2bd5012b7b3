import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { AgentFlags, CliContext } from "../../command/index.js";
import { addAgentOptions, agentSettings, clientInput, sessionHost, write } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { newToken, readTokenFile } from "../../lib/http/bearer-token.js";
import type { OpenClient } from "./served-client.js";
import { toolClients } from "./tools/tool-clients.js";

interface McpServerFlags extends AgentFlags, ListenFlags {
  tools?: boolean;
  idleMinutes?: number;
}

const MAX_IDLE_MINUTES = 24 * 60;

export function defineMcpServer(command: Command, context: CliContext): void {
  for (const option of listenOptions()) command.addOption(option);
  command
    .option("--tools", "serve the sandboxed tools themselves, without a model")
    .option(
      "--idle-minutes <n>",
      "when an idle session gives its container back; its next call starts another one (default: 30)",
      idleMinutes,
    );
  addAgentOptions(command)
    .addHelpText("after", HELP)
    .action(async (flags: McpServerFlags) => {
      await serve(flags, context);
    });
}

const HELP = `
An MCP client starts this program. Without --tools it has the tools codex and codex-reply, as those of codex mcp-server:
each session of the agent has a container of its own, and the options hold for calls that do not say otherwise.

With --tools, an MCP client runs commands and works on files in a container: one for each client, and for a client
without a session (2026-07-28 over HTTP) one for each open_sandbox. They end with the client.`;

async function serve(flags: McpServerFlags, context: CliContext): Promise<void> {
  const { tools, idleMinutes: minutes, ...others } = flags;
  if (tools === true && minutes !== undefined)
    throw invalidUsage(
      "--idle-minutes is for sessions of the agent, and --tools has none",
      "leave one of them out",
    );
  if (tools !== true && others.image !== undefined)
    throw invalidUsage(
      "--image is for a prompt, and prompts come from the clients",
      "leave it out; --container-image names the image of the containers",
    );
  const openClient =
    tools === true
      ? await toolClients(others, context)
      : await codexClients(others, { context, idleMinutes: minutes });
  await serveMcp(flags, openClient, context);
}

function idleMinutes(text: string): number {
  const minutes = Number(text);
  if (minutes > 0 && minutes <= MAX_IDLE_MINUTES) return minutes;
  throw new InvalidArgumentError(`It must be a number of minutes, at most ${MAX_IDLE_MINUTES}.`);
}

/** The place at which an MCP server takes requests. */
type Listen = { kind: "stdio" } | { kind: "http"; port: number };

interface ListenFlags {
  listen: Listen;
  tokenFile?: string;
}

function listenOptions(): Option[] {
  return [
    new Option("--listen <where>", "stdio, or http://127.0.0.1:PORT; port 0 is any that is free")
      .argParser(listenArgument)
      .default({ kind: "stdio" } satisfies Listen, "stdio"),
    new Option(
      "--token-file <file>",
      "the file with the token of HTTP clients (default: a new token, printed)",
    ),
  ];
}

/** Serves MCP clients until they are gone, or for HTTP until the signal aborts. */
async function serveMcp(
  { listen, tokenFile }: ListenFlags,
  openClient: OpenClient,
  context: CliContext,
): Promise<void> {
  const { stdout, cwd, signal } = context;
  if (listen.kind === "stdio") {
    if (tokenFile !== undefined) throw invalidUsage("--token-file is for --listen http://127.0.0.1:PORT");
    const { serveMcpStdio } = await import("./serve-stdio.js");
    return await serveMcpStdio({ input: clientInput(context), output: stdout, openClient, signal });
  }
  const token = tokenFile === undefined ? newToken() : await readTokenFile(resolve(cwd, tokenFile));
  const { serveMcpHttp } = await import("./serve-http.js");
  await serveMcpHttp({
    port: listen.port,
    token,
    openClient,
    signal,
    onListening: (url) => {
      const line = tokenFile === undefined ? `token = "${token}"\n` : "";
      void write(stdout, `url = "${url}"\n${line}`);
    },
  });
}

function listenArgument(text: string): Listen {
  if (/^stdio(?::\/\/)?$/.test(text)) return { kind: "stdio" };
  const port = Number(/^http:\/\/(?:127\.0\.0\.1|localhost):([0-9]{1,5})(?:\/mcp)?\/?$/.exec(text)?.[1]);
  if (port <= 65_535) return { kind: "http", port };
  throw new InvalidArgumentError(
    "It must be stdio or http://127.0.0.1:PORT: other addresses are not served.",
  );
}

/**
 * The tools codex and codex-reply for MCP clients. One limit on open sessions holds for all clients together.
 */
async function codexClients(
  flags: AgentFlags,
  { context, idleMinutes }: { context: CliContext; idleMinutes: number | undefined },
): Promise<OpenClient> {
  const session = { settings: await agentSettings(flags, context), host: sessionHost(context) };
  const [{ ThreadList }, { openCodexClient }, { prepareThread }] = await Promise.all([
    import("./codex/thread-list.js"),
    import("./codex/open-codex-client.js"),
    import("./codex/prepare-thread.js"),
  ]);
  const threads = new ThreadList({
    prepare: async (request, people) => await prepareThread(request, people, session),
    idleMs: idleMinutes === undefined ? undefined : idleMinutes * 60_000,
  });
  return () => openCodexClient(threads);
}
