import { resolve } from "node:path";
import type { Command } from "commander";
import type { CliContext } from "../../context.js";
import { say, writeJson, writeTable } from "../../render.js";

interface DiffFlags {
  all?: boolean;
  json?: boolean;
}

export function defineDiffRuns(command: Command, context: CliContext): void {
  command
    .description("say which tasks flipped between two runs, and whether that could be chance")
    .argument("<before>", "the folder of a run")
    .argument("<after>", "the folder of another one")
    .option("--all", "also print the tasks whose reward is the same")
    .option("--json", "print all of it as JSON")
    .addHelpText("after", help)
    .action(async (before: string, after: string, flags: DiffFlags) => {
      await diffRuns([resolve(context.cwd, before), resolve(context.cwd, after)], flags, context);
    });
}

const help = `
A run solves a task if each of its attempts that have a score has the full reward. A task flips if one run solves it and the other
does not. Attempts without a score are left out.`;

async function diffRuns(
  [before, after]: readonly [string, string],
  flags: DiffFlags,
  { stdout }: CliContext,
): Promise<void> {
  const [{ readRun, compareRuns }, { comparisonText, settingRows, taskRows }] = await Promise.all([
    import("../../../batch/index.js"),
    import("./comparison-text.js"),
  ]);
  const comparison = compareRuns(await readRun(before), await readRun(after));
  if (flags.json === true) return await writeJson(stdout, { before, after, ...comparison });
  if (comparison.settings.length > 0) await writeTable(stdout, settingRows(comparison.settings));
  const shown =
    flags.all === true ? comparison.tasks : comparison.tasks.filter(({ change }) => change !== "same");
  if (shown.length > 0) await writeTable(stdout, taskRows(shown));
  await say(stdout, comparisonText(comparison));
}
