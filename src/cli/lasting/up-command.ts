import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { chosenAsArguments, fitted, write } from "../../command/index.js";
import { createProgress } from "../../lib/terminal/progress.js";
import { addUpOptions, requireLasting, type UpFlags } from "./up-flags.js";

export function defineUp(command: Command, context: CliContext): void {
  addUpOptions(command)
    .usage("[options]")
    .action(async (flags: UpFlags) => {
      requireLasting(flags);
      const given = command.parent?.args.slice(1) ?? [];
      await up(flags, { argv: [...given, ...chosenAsArguments(command)], context });
    });
}

async function up(
  flags: UpFlags,
  { argv, context }: { argv: readonly string[]; context: CliContext },
): Promise<void> {
  const { stderr, stdout, signal, cwd, environment } = context;
  const { requireName } = await import("../../services/index.js");
  if (flags.name !== undefined) requireName(flags.name);
  const { reachOwner } = await import("./reach-owner.js");
  const progress = createProgress(stderr, { usesColour: !environment.forbidsColor });
  if (stderr.isTTY === true) progress.step("starting the sandbox");
  try {
    const owner = await reachOwner(context);
    const request = {
      ...{ name: flags.name ?? null, argv: [...argv], cwd },
      ...{ env: flags.env ?? {}, variables: environment.variables },
    };
    const tell = (text: string) => {
      progress.close();
      stderr.write(fitted(stderr, text));
    };
    const name = await owner.up(request, { signal, tell });
    progress.close();
    await write(stdout, `${name}\n`);
  } finally {
    progress.close();
  }
}
