import type { Command } from "commander";
import type { McpServerConfig } from "../../agent/index.js";
import { loadConfig } from "../../agent/index.js";
import type { AgentFlags, CliContext } from "../../command/index.js";
import {
  addConfigOptions,
  addLimitOptions,
  addVariableOptions,
  configChoice,
  type LimitFlags,
  type VariableFlags,
  write,
  writeJson,
  writeTable,
} from "../../command/index.js";
import { type BrigError, invalidUsage } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";
import type { CheckedServer } from "./check-servers.js";
import { describedServer, detailRows, listRow } from "./server-text.js";

interface McpFlags
  extends Pick<AgentFlags, "profile" | "config" | "cd" | "sandbox" | keyof LimitFlags | keyof VariableFlags> {
  json?: boolean;
  check?: boolean;
}

type Servers = Readonly<Record<string, McpServerConfig>>;

export function defineMcp(command: Command, context: CliContext): void {
  const described = command.description("list the MCP servers of the configuration, or show one");
  described.action(() => {
    throw invalidUsage("brig mcp needs a subcommand: list or get", "see: brig mcp --help");
  });
  withOptions(described.command("list").alias("ls").description("list the configured servers")).action(
    async (flags: McpFlags) => {
      await list(flags, context);
    },
  );
  withOptions(described.command("get").description("show one server"))
    .argument("<name>", "the server, as [mcp_servers.NAME] calls it")
    .action(async (name: string, flags: McpFlags) => {
      await get(name, flags, context);
    });
}

function withOptions(command: Command): Command {
  return addVariableOptions(addLimitOptions(addConfigOptions(command)))
    .option("-C, --cd <dir>", "the workspace (default: the current directory)")
    .option("-s, --sandbox <mode>", "with --check, how servers see the workspace")
    .option("--check", "start the servers, and list their tools")
    .option("--json", "print JSON; secrets are masked");
}

async function list(flags: McpFlags, context: CliContext): Promise<void> {
  const servers = await configured(flags, context);
  const checks = await checked(servers, flags, context);
  const names = Object.keys(servers);
  if (flags.json === true)
    return await writeJson(
      context.stdout,
      Object.entries(servers).map(([name, server]) => described(name, server, { checks, context })),
    );
  if (names.length === 0)
    return await write(context.stdout, "no MCP server is configured; see docs/mcp.md\n");
  const rows = Object.entries(servers).map(([name, server]) =>
    listRow(described(name, server, { checks, context })),
  );
  await writeTable(context.stdout, [["NAME", "RUNS IN", "COMMAND OR URL", "STATUS"], ...rows]);
}

async function get(name: string, flags: McpFlags, context: CliContext): Promise<void> {
  const servers = await configured(flags, context);
  const server = Object.hasOwn(servers, name) ? servers[name] : undefined;
  if (server === undefined) throw unknownServer(name, Object.keys(servers));
  const checks = await checked({ [name]: server }, flags, context);
  const shown = described(name, server, { checks, context });
  if (flags.json === true) return await writeJson(context.stdout, shown);
  await writeTable(context.stdout, detailRows(shown));
}

async function configured(flags: McpFlags, context: CliContext): Promise<Servers> {
  return (await loadConfig(context.environment, configChoice(flags, context))).config.mcp_servers;
}

/** With `--check`, starts the servers. The exit status is 1 if an enabled server does not work. */
async function checked(
  servers: Servers,
  flags: McpFlags,
  context: CliContext,
): Promise<ReadonlyMap<string, CheckedServer>> {
  if (flags.check !== true) return new Map();
  const { checkServers } = await import("./check-servers.js");
  const checks = await checkServers(servers, flags, context);
  const works = ([name, { enabled }]: [string, McpServerConfig]) =>
    !enabled || checks.get(name)?.error === null;
  if (!Object.entries(servers).every(works)) context.setExitStatus(1);
  return checks;
}

function described(
  name: string,
  server: McpServerConfig,
  { checks, context }: { checks: ReadonlyMap<string, CheckedServer>; context: CliContext },
) {
  const { variables } = context.environment;
  return describedServer(name, server, { variables, check: checks.get(name) ?? null });
}

function unknownServer(name: string, names: readonly string[]): BrigError {
  const meant = suggest(name, names);
  return invalidUsage(
    `there is no MCP server ${JSON.stringify(name)} in the configuration`,
    meant === null ? "brig mcp list names all of them" : `did you mean ${meant}?`,
  );
}
