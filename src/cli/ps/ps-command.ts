import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { openControlRecords, say, writeJson, writeTable } from "../../command/index.js";
import { killedText } from "../lasting/reach-owner.js";
import { type ListedSandbox, listSandboxes, namesOfKilled } from "./listed-sandboxes.js";

interface PsFlags {
  all?: boolean;
  json?: boolean;
}

export function definePs(command: Command, context: CliContext): void {
  command
    .option(
      "-a, --all",
      "list sandboxes, too, that have ended: those of brig up until brig rm, others while their containers are there",
    )
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (flags: PsFlags) => await listOpen(flags, context));
}

const help = `
It lists the sandboxes that were opened with this $BRIG_HOME, by brig up, by a running brig or by a program that uses the library, and
those that --keep has left running. brig port makes a port of one reachable.`;

async function listOpen({ all = false, json }: PsFlags, context: CliContext): Promise<void> {
  const { stdout, stderr, environment } = context;
  const { connectEngine } = await import("../../sandbox/index.js");
  const every = await listSandboxes(environment.brigHome, (endpoint) =>
    connectEngine({ env: environment, endpoint }),
  );
  const listed = every.filter(({ state }) => all || state === "running");
  if (listed.some(({ confirmed }) => !confirmed))
    await say(stderr, "brig: the engine does not say of every sandbox whether it still runs\n");
  await say(stderr, killedText(await namesOfKilled(environment.brigHome)));
  if (json === true) return await writeJson(stdout, listed);
  if (listed.length === 0) return await say(stderr, "no sandbox is running\n");
  const commands = await commandsIn(environment.brigHome);
  await writeTable(stdout, [header, ...listed.map((one) => row(one, commands))]);
}

const header = ["NAME", "SANDBOX", "STATE", "MODE", "NETWORK", "IMAGE", "CREATED", "WORKSPACE", "COMMAND"];

function row(
  { name, id, state, confirmed, mode, network, image, createdAt, workspace }: ListedSandbox,
  commands: ReadonlyMap<string, string>,
): string[] {
  return [
    ...[name ?? "", id.slice(0, 8), confirmed ? state : `${state}?`, mode, network, image],
    ...[createdAt.slice(0, 16).replace("T", " "), workspace ?? "", commands.get(id) ?? ""],
  ];
}

/** The commands that run in the sandboxes whose owners take requests for ports, by the sandbox's id. */
async function commandsIn(brigHome: string): Promise<ReadonlyMap<string, string>> {
  try {
    const { records } = await openControlRecords(brigHome);
    return new Map((await records.list()).map(({ sandbox, command }) => [sandbox, command]));
  } catch {
    return new Map();
  }
}
