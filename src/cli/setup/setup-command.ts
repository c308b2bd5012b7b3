import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { defineSetupClaude } from "../claude/setup-claude.js";
import { defineSetupCodex } from "../codex/setup-codex.js";

/** `brig setup PROGRAM`: a subcommand for each program that brig can be set up in. */
export function defineSetup(command: Command, context: CliContext): void {
  command.action(() => {
    throw invalidUsage("brig setup needs a subcommand: claude or codex", "see: brig setup --help");
  });
  defineSetupClaude(command.command("claude"), context);
  defineSetupCodex(command.command("codex"), context);
}
