import type { DefineCommand } from "../../command/index.js";
import { write } from "../../command/index.js";
import { readVersion } from "../../version.js";
import type { CommandEntry } from "../command-entry.js";
import { programOf } from "../program.js";
import { manPage } from "./man-page.js";

/** `brig man`: the manual page of these commands, which the package brings as a file. */
export function manOf(commands: readonly CommandEntry[]): DefineCommand {
  return (command, context) =>
    command.action(async () => {
      const program = await programOf(
        commands.filter(({ isHidden }) => isHidden !== true).map(({ name }) => name),
        { context, commands },
      );
      await write(context.stdout, manPage(program, readVersion()));
    });
}
