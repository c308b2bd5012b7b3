import { resolve } from "node:path";
import type { Command } from "commander";
import type { CliContext } from "../../context.js";
import { say, writeJson, writeTable } from "../../render.js";

export function defineMerge(command: Command, context: CliContext): void {
  command
    .description("put the attempts of several runs of the same settings into one")
    .argument("<out>", "a new folder for the merged run")
    .argument("<runs...>", "folders of runs; they stay as they are")
    .option("--json", "print what was merged as JSON")
    .addHelpText("after", help)
    .action(async (out: string, runs: [string, ...string[]], flags: { json?: boolean }) => {
      await merge(resolve(context.cwd, out), runs, { isJson: flags.json === true, context });
    });
}

const help = `
Attempts at a task are numbered anew. An attempt that several of the runs have counts once. The runs may have different tasks; what
they have in common must be the same.`;

async function merge(
  out: string,
  [first, ...others]: [string, ...string[]],
  { isJson, context }: { isJson: boolean; context: CliContext },
): Promise<void> {
  const { stdout, stderr, cwd, signal } = context;
  const [{ mergeRuns, writeReports }, { finalText, taskRows }] = await Promise.all([
    import("../../../batch/index.js"),
    import("../summary-text.js"),
  ]);
  const folders: [string, ...string[]] = [resolve(cwd, first), ...others.map((run) => resolve(cwd, run))];
  const merged = await mergeRuns(folders, { out, signal, now: () => new Date() });
  const summary = await writeReports(out, merged);
  const { duplicates, withoutFiles } = merged;
  if (isJson) return await writeJson(stdout, { folder: out, duplicates, withoutFiles, summary });
  await writeTable(stdout, taskRows(summary));
  await say(stdout, finalText(summary, { stop: null }));
  if (duplicates > 0)
    await say(stderr, `${duplicates} attempts were in several of the runs, and count once\n`);
  if (withoutFiles > 0)
    await say(stderr, `${withoutFiles} attempts have a result, but their files are missing\n`);
  await say(stderr, `results in ${out}\n`);
}
