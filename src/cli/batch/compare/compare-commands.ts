import { resolve } from "node:path";
import type { Command } from "commander";
import type { CliContext } from "../../../command/index.js";
import { collect, say, writeJson, writeTable } from "../../../command/index.js";
import { atLeastOne } from "../batch-flags.js";
import type { RegradeFlags } from "./regrade.js";

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
    .addHelpText("after", diffHelp)
    .action(async (before: string, after: string, flags: DiffFlags) => {
      await diffRuns([resolve(context.cwd, before), resolve(context.cwd, after)], flags, context);
    });
}

const diffHelp = `
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

export function defineMerge(command: Command, context: CliContext): void {
  command
    .description("put the attempts of several runs of the same settings into one")
    .argument("<out>", "a new folder for the merged run")
    .argument("<runs...>", "folders of runs; they stay as they are")
    .option("--json", "print what was merged as JSON")
    .addHelpText("after", mergeHelp)
    .action(async (out: string, runs: [string, ...string[]], flags: { json?: boolean }) => {
      await merge(resolve(context.cwd, out), runs, { isJson: flags.json === true, context });
    });
}

const mergeHelp = `
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

export function defineRegrade(command: Command, context: CliContext): void {
  command
    .description("grade the attempts of a run again, by the tests as they are now")
    .argument("<run>", "the folder of the run")
    .argument("<paths...>", "its tasks, as brig batch takes them")
    .option(
      "--task <pattern>",
      "grade only attempts at tasks of this name, which may contain * and ?; may be repeated",
      collect,
    )
    .option("--exclude <pattern>", "leave out tasks of this name; may be repeated", collect)
    .option("-n, --concurrency <number>", "attempts at a time (default: by the machine)", atLeastOne)
    .option("--offline", "pull nothing; fail at once if an image is missing")
    .option("--allow-changed", "also if the instruction or the environment of a task has changed since")
    .option("--json", "print only events on stdout, one JSON object per line")
    .addHelpText("after", regradeHelp)
    .action(async (run: string, paths: string[], flags: RegradeFlags) => {
      const { regrade } = await import("./regrade.js");
      await regrade({ run, paths }, flags, context);
    });
}

const regradeHelp = `
No agent runs: the tests get the artifacts that were kept of each attempt. The former grades are kept in superseded, in the
folder of the run. If it is interrupted, attempts without their new grade have no score; the same command grades all again, and
brig batch --score-unscored only those.`;
