import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { SANDBOX_MODES } from "../../sandbox/index.js";

export function definePolicy(command: Command, context: CliContext): void {
  command.action(() => {
    throw invalidUsage("brig policy needs a subcommand: show or check", "see: brig policy --help");
  });
  command
    .command("show")
    .description("print a mode as a policy file, which --policy takes")
    .argument("<policy>", `${SANDBOX_MODES.join(", ")}, or a policy file, printed with all that it extends`)
    .action(async (policy: string) => {
      const { showPolicy } = await import("./show-policy.js");
      await showPolicy(policy, context);
    });
  command
    .command("check")
    .description("say whether a policy file is valid, or what is wrong with it and on which line")
    .argument("<file>", "the policy file")
    .option("--json", "print the outcome as JSON")
    .addHelpText(
      "after",
      "\nExit status: 0 if the file is valid, 2 if not, as for a command that is given it.",
    )
    .action(async (file: string, flags: { json?: boolean }) => {
      const { checkPolicy } = await import("./check-policy.js");
      await checkPolicy(file, flags, context);
    });
}
