import type { Command } from "commander";
import { openPorts } from "../../sandbox/network/port-records.js";
import type { CliContext } from "../context.js";
import { say, writeJson, writeTable } from "../render.js";

export function definePort(command: Command, context: CliContext): void {
  command.option("--json", "print the list as JSON").action(async (flags: { json?: boolean }) => {
    await listPorts(flags, context);
  });
}

async function listPorts(
  flags: { json?: boolean },
  { environment, stdout, stderr }: CliContext,
): Promise<void> {
  const ports = await openPorts(environment.brigHome);
  if (flags.json === true) return await writeJson(stdout, ports);
  if (ports.length === 0)
    return await say(stderr, "no port of a sandbox is published; see: brig exec --help, --publish\n");
  const rows = ports.map(({ url, sandboxPort, sandbox, command, workingDirectory }) => [
    url,
    String(sandboxPort),
    sandbox.slice(0, 8),
    workingDirectory,
    command,
  ]);
  await writeTable(stdout, [["AT", "PORT", "SANDBOX", "DIRECTORY", "COMMAND"], ...rows]);
}
