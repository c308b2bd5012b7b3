import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { ChangesWork, write, writeJson } from "../../command/index.js";
import type { OwnerClient } from "../../services/index.js";
import { requireName } from "../../services/index.js";
import { ownerNow, runningRecord } from "./exec-in.js";

export function defineFork(command: Command, context: CliContext): void {
  command
    .argument("<sandbox>", "a name, or an id or the start of one, as brig ps lists them")
    .option("--name <name>", "the name of the new sandbox (default: two words that are free)")
    .option("--json", "print JSON")
    .addHelpText("after", HELP)
    .action(async (wanted: string, { name, json = false }: { name?: string; json?: boolean }) => {
      if (name !== undefined) requireName(name);
      const { name: parent } = runningRecord(wanted, context);
      const owner = await ownerNow(context);
      const forked = await forkShown(owner, { parent, name }, context);
      if (json) await writeJson(context.stdout, forked);
      else await write(context.stdout, `${forked.name}\n`);
    });
}

async function forkShown(
  owner: OwnerClient,
  { parent, name }: { parent: string; name: string | undefined },
  context: CliContext,
): Promise<{ name: string; id: string }> {
  using shown = new ChangesWork(context, `copying the workspace of ${parent}`);
  return await owner.fork(parent, { name, signal: context.signal, onCopied: shown.onCopied });
}

const HELP = `
It prints the name of the new sandbox, which has the same options and a copy of the copy-on-write workspace (brig up --workspace overlay) as it is now.
Processes, published ports and what was written outside of the workspace are not copied. From then on the two are independent.
A session is copied by brig sessions fork ID.`;
