import { resolve } from "node:path";
import type { Command } from "commander";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import type { CliContext } from "../context.js";
import { say, write } from "../render.js";

export function defineInit(command: Command, context: CliContext): void {
  command
    .description("write a small, complete task to begin with")
    .argument("<dir>", "a directory that is empty or does not exist; its name is the task's")
    .action(async (directory: string) => {
      const { initTask } = await import("../../batch/index.js");
      const files = await initTask(resolve(context.cwd, directory));
      await write(context.stdout, files.map((file) => `${visibleLine(`${directory}/${file}`)}\n`).join(""));
      await say(context.stderr, `check it with: brig batch lint ${visibleLine(directory)}\n`);
    });
}
