import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { defineAudit } from "./audit/audit-command.js";
import { addBatchOptions, type BatchFlags } from "./batch-flags.js";
import { defineDiffRuns, defineMerge, defineRegrade } from "./compare/compare-commands.js";
import { defineSeal, defineVerify } from "./seal/seal-commands.js";
import { defineInit, defineLint } from "./task-commands.js";

export function defineBatch(command: Command, context: CliContext): void {
  addBatchOptions(command)
    // Makes options after a subcommand's name belong to the subcommand.
    .enablePositionalOptions()
    .argument(
      "<paths...>",
      "tasks: directories, directories of directories, or files with a task in each row",
    )
    .addHelpText("after", help)
    .action(async (paths: string[], flags: BatchFlags) => {
      const { runBatchCommand } = await import("./run-batch-command.js");
      await runBatchCommand(paths, flags, context);
    });
  defineLint(command.command("lint"), context);
  defineAudit(command.command("audit"), context);
  defineInit(command.command("init"), context);
  defineRegrade(command.command("regrade"), context);
  defineDiffRuns(command.command("diff"), context);
  defineMerge(command.command("merge"), context);
  defineSeal(command.command("seal"), context);
  defineVerify(command.command("verify"), context);
}

const help = `
The same command again, with the same -o, runs what has not ended yet. Ctrl-C starts no more attempts and waits for those
that run; a second one cancels them; a third ends brig at once.
Exit status: 0 if all attempts have a score, also if none passed, 1 if not or if --min-reward is not reached (--min-reward 1: unless all
pass), 2 for bad usage or other settings than those of the run in -o, 125 without an engine, 130 after ctrl-C.`;
