import type { Command } from "commander";
import type { CliContext } from "../../context.js";
import { collect } from "../../setup/option-values.js";
import type { VerifyFlags } from "./verify.js";

export function defineVerify(command: Command, context: CliContext): void {
  command
    .description("check a run that brig batch seal has signed, and grade it again")
    .argument("<run>", "the folder of the sealed run; nothing in it is changed")
    .argument("[paths...]", "its tasks, as brig batch takes them: their tests grade the attempts again")
    .option("--key <file>", "the public key that must have signed it (default: the one that the seal names)")
    .option(
      "--task <pattern>",
      "grade only attempts at tasks of this name, which may contain * and ?; may be repeated",
      collect,
    )
    .option("--exclude <pattern>", "leave out tasks of this name; may be repeated", collect)
    .option("--json", "print the outcome as JSON")
    .addHelpText("after", help)
    .action(async (run: string, paths: string[], flags: VerifyFlags) => {
      const { verifyRun } = await import("./verify.js");
      await verifyRun({ run, paths }, flags, context);
    });
}

const help = `
Without --key a good signature says only that nothing was changed since somebody signed it: compare the fingerprint that is printed with
the one that you were told. No agent runs, and no image is pulled: to grade again, the images must be on this machine, or be built here
from the tasks.
Attempts whose tests ran in the agent's container cannot be graded again by anybody: they are counted apart.
Exit status: 0 if everything is as it was signed, 1 if anything else differs or could not be graded again.`;
