import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { ChangesWork, say, write, writeJson } from "../../command/index.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { OnCopied, PathReason } from "../../sandbox/index.js";
import { openChanges } from "./chosen-changes.js";
import { addChangesOptions, type ChangesFlags } from "./kept-changes.js";

interface ApplyFlags extends ChangesFlags {
  dryRun?: boolean;
}

const CONFLICT_STATUS = 1;

export function defineApply(command: Command, context: CliContext): void {
  addChangesOptions(command)
    .option("--dry-run", "change nothing, and say what would be applied")
    .addHelpText("after", help)
    .action(async (paths: string[], flags: ApplyFlags) => {
      await apply(paths, flags, context);
    });
}

const help = `
Either all of it is applied or nothing: if you have changed one of the files since, brig says which, exits with 1, and
changes none. Git's own files, whatever git would take for a repository, protected names, FIFOs, sockets and devices
are never applied. brig apply NAME does the same for a sandbox of brig up that runs or was stopped.`;

async function apply(given: string[], flags: ApplyFlags, context: CliContext): Promise<void> {
  await using changes = await openChanges(given, flags, { context, mask: async () => undefined });
  const { about, paths } = changes;
  const { stdout, stderr, signal } = context;
  const isDry = flags.dryRun === true;
  const result = await shown(context, (onCopied) =>
    changes.apply({ paths, dryRun: isDry, signal, onCopied }),
  );
  const { applied, conflicts, skipped, findings = [] } = result;
  if (conflicts.length > 0) context.setExitStatus(CONFLICT_STATUS);
  if (flags.json === true) return await writeJson(stdout, { ...about, dryRun: isDry, ...result });
  for (const path of applied) await write(stdout, `${neutraliseLine(path)}\n`);
  await listReasons(context, "never applied", skipped);
  await listReasons(context, "in conflict, so nothing was applied", conflicts);
  if (conflicts.length > 0) return;
  if (paths !== undefined && applied.length + skipped.length === 0)
    return await say(stderr, "brig: nothing at these paths differs from your files\n");
  const number = applied.length === 1 ? "1 path" : `${applied.length} paths`;
  await say(
    stderr,
    `brig: ${number} ${isDry ? "would be " : ""}applied to ${neutraliseLine(about.workspace)}\n`,
  );
  const obeyed = findings.map(({ path, obeyedBy }) => ({
    path,
    reason: `can run by itself, or change what runs: ${obeyedBy}`,
  }));
  await listReasons(context, "review these before you run anything there", obeyed);
}

async function shown<T>(context: CliContext, apply: (onCopied: OnCopied) => Promise<T>): Promise<T> {
  using work = new ChangesWork(context, "applying the changes");
  return await apply(work.onCopied);
}

async function listReasons(
  { stderr }: CliContext,
  title: string,
  list: readonly PathReason[],
): Promise<void> {
  if (list.length === 0) return;
  const lines = list.map(({ path, reason }) => `  ${neutraliseLine(path)}: ${reason}\n`);
  await say(stderr, `brig: ${title}:\n${lines.join("")}`);
}
