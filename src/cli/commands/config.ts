import { access } from "node:fs/promises";
import type { Command } from "commander";
import type { DescribedValue, LoadedConfig } from "../../agent/index.js";
import { configFiles, describeConfig, describeSource, loadConfig } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import {
  addConfigOptions,
  type ConfigFlags,
  configChoice,
  say,
  write,
  writeJson,
  writeTable,
} from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { defineConfigEdits } from "./config-edits.js";

interface ShowFlags extends ConfigFlags {
  json?: boolean;
}

export function defineConfig(command: Command, context: CliContext): void {
  command.action(() => {
    throw invalidUsage(
      "brig config needs a subcommand: show, path, init, set, unset or edit",
      "see: brig config --help",
    );
  });
  addConfigOptions(command.command("show"))
    .description("print each value and where it comes from, with warnings about mistakes")
    .option("-C, --cd <dir>", "the workspace (default: the current directory)")
    .option("--json", "print the values as JSON")
    .action((flags: ShowFlags) => showConfig(flags, context));
  command
    .command("path")
    .description("print the path of the configuration file, even if there is none yet")
    .option("--json", "print the path as JSON")
    .action((flags: { json?: boolean }) => showPath(flags, context));
  defineConfigEdits(command, context);
}

async function showConfig(flags: ShowFlags, context: CliContext): Promise<void> {
  const loaded = await loadConfig(context.environment, configChoice(flags, context));
  const values = describeConfig(loaded);
  if (flags.json === true) return await writeJson(context.stdout, asJson(loaded, values));
  for (const sentence of remarks(loaded)) await say(context.stderr, `brig: ${neutralise(sentence)}\n`);
  const rows = values.map((value) => [value.key, shownValue(value), describeSource(value.source)]);
  await writeTable(context.stdout, [["KEY", "VALUE", "FROM"], ...rows]);
}

/** Strings are quoted, to tell them from a remark about a missing value. */
function shownValue({ value, remark }: DescribedValue): string {
  if (value !== undefined) return JSON.stringify(value);
  return remark === null ? "–" : `(${remark})`;
}

function remarks({ warnings, notes }: LoadedConfig): string[] {
  return [...warnings, ...notes];
}

function asJson(loaded: LoadedConfig, values: readonly DescribedValue[]): object {
  const entries = values.map(({ key, value, remark, source }) => [
    key,
    { value: value ?? null, ...(remark === null ? {} : { remark }), source },
  ]);
  return { file: loaded.file, warnings: remarks(loaded), values: Object.fromEntries(entries) };
}

async function showPath({ json }: { json?: boolean }, { environment, stdout }: CliContext): Promise<void> {
  const [own, codex] = configFiles(environment);
  const exists = await isThere(own);
  const file = !exists && (await isThere(codex)) ? codex : own;
  if (json === true) return await writeJson(stdout, { file, exists: exists || file === codex });
  await write(stdout, `${file}\n`);
}

async function isThere(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  );
}
