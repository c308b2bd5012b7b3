import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { say, writeJson, writeTable } from "../../command/index.js";
import { formatBytes } from "../../lib/bytes.js";
import { findLasting, readLasting } from "../../services/index.js";
import { ownerNow } from "./exec-in.js";

export function defineStats(command: Command, context: CliContext): void {
  command
    .argument("[sandbox...]", "names, or ids or the start of an id; default: all that run")
    .option("--json", "print JSON")
    .addHelpText("after", "\nIt looks once, for half a second. 100 % are one processor.")
    .action(async (wanted: string[], { json = false }: { json?: boolean }) => {
      await printStats(wanted, { json }, context);
    });
}

async function printStats(
  wanted: readonly string[],
  { json }: { json: boolean },
  context: CliContext,
): Promise<void> {
  const { environment, signal, stdout, stderr } = context;
  const known = readLasting(environment.brigHome);
  const chosen =
    wanted.length === 0
      ? known.filter(({ state }) => state === "running")
      : wanted.map((one) => findLasting(known, one));
  const owner = chosen.length === 0 ? null : await ownerNow(context);
  const used = await Promise.all(
    chosen.flatMap(({ name, id }) =>
      owner === null ? [] : [owner.usage(name, signal).then((usage) => ({ name, id, ...usage }))],
    ),
  );
  if (json) return await writeJson(stdout, used);
  if (used.length === 0) return await say(stderr, "no sandbox of brig up is running\n");
  const rows = used.map(({ name, id, cpuPercent, memoryBytes, memoryLimitBytes, pids, pidsLimit }) => [
    ...[name, id.slice(0, 8), cpuPercent === null ? "?" : `${cpuPercent.toFixed(1)} %`],
    ...[memoryBytes === null ? "?" : formatBytes(memoryBytes), formatBytes(memoryLimitBytes)],
    `${pids ?? "?"} of ${pidsLimit}`,
  ]);
  await writeTable(stdout, [["NAME", "SANDBOX", "CPU", "MEMORY", "LIMIT", "PROCESSES"], ...rows]);
}
