import { realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Command } from "commander";
import { execa } from "execa";
import {
  checkConfigText,
  configFiles,
  configKey,
  configValue,
  editedConfig,
  INITIAL_CONFIG,
  type KeyPath,
  missingConfig,
} from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { writeDurably } from "../../lib/files/durable-file.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { neutralise } from "../../lib/terminal/terminal.js";

const MAX_BYTES = 1024 * 1024;

/** The commands that change the user's configuration file. */
export function defineConfigEdits(command: Command, context: CliContext): void {
  command
    .command("init")
    .description("write a configuration file in which every line is a comment")
    .action(() => init(context));
  command
    .command("set")
    .description("set a value in the configuration file; comments and everything else stay")
    .argument("<key>", "the key, with dots: sandbox_workspace_write.network_access")
    .argument("<value>", "the value in TOML; what is not TOML is text")
    .addHelpText("after", "\nFor example: brig config set model gpt-5.2-codex")
    .action((key: string, value: string) =>
      save({ path: pathOf(key), value: configValue(value.trim()) }, context),
    );
  command
    .command("unset")
    .description("remove a value from the configuration file")
    .argument("<key>", "the key, with dots")
    .action((key: string) => save({ path: pathOf(key), value: undefined }, context));
  command
    .command("edit")
    .description("open the configuration file in $VISUAL or $EDITOR, and check it afterwards")
    .action(() => edit(context));
}

async function init({ environment, stdout }: CliContext): Promise<void> {
  const [file] = configFiles(environment);
  if ((await readText(file)) !== null)
    throw invalidUsage(`${file} is there already`, "open it with: brig config edit");
  await replace(file, INITIAL_CONFIG);
  await write(stdout, `${file}\n`);
}

/** Undefined removes the value. */
async function save({ path, value }: { path: KeyPath; value: unknown }, context: CliContext): Promise<void> {
  const { environment, stdout } = context;
  const [file, codex] = configFiles(environment);
  const text = await readText(file);
  if (text === null && value === undefined) throw missingConfig(file);
  if (text === null && (await readText(codex)) !== null)
    throw invalidUsage(
      `brig reads ${codex}, and would ignore all of it if there were a file of its own`,
      `change that file, or begin with a copy: cp ${codex} ${file}`,
    );
  const edited = editedConfig(text ?? "", { file, path, value });
  const known = new Set(text === null ? [] : checkConfigText(text, file, environment.home));
  const [unknown] = checkConfigText(edited, file, environment.home).filter((one) => !known.has(one));
  // A mistyped key would be there without an effect.
  if (unknown !== undefined)
    throw invalidUsage(`nothing was changed: ${unknown}`, "brig config show lists all keys");
  await replace(file, edited);
  await write(stdout, `${file}\n`);
}

async function edit(context: CliContext): Promise<void> {
  const { environment, stdin, stdout, stderr } = context;
  const { VISUAL, EDITOR } = environment.variables;
  const [file] = configFiles(environment);
  if (stdin.isTTY !== true || stdout.isTTY !== true)
    throw invalidUsage("brig config edit needs a terminal", "in scripts, use brig config set");
  if ((await readText(file)) === null) await replace(file, INITIAL_CONFIG);
  // The variable may have arguments, and a shell reads it elsewhere too.
  const { exitCode } = await execa("sh", ["-c", `${VISUAL || EDITOR || "vi"} "$1"`, "sh", file], {
    stdio: "inherit",
    reject: false,
  });
  if (exitCode !== 0)
    throw new BrigError("the editor has failed", { code: "usage.invalid", hint: "set EDITOR" });
  for (const sentence of checkConfigText((await readText(file)) ?? "", file, environment.home))
    await say(stderr, `brig: ${neutralise(sentence)}\n`);
}

/** Null if there is none. Error: `config.invalid`. */
async function readText(file: string): Promise<string | null> {
  const read = await readTextFile(file, MAX_BYTES);
  if (read.kind === "text") return read.text;
  if (read.kind === "missing") return null;
  throw new BrigError(`${file} ${read.reason}`, { code: "config.invalid", cause: read.cause });
}

/** Whole or not at all. What a link leads to is replaced, and keeps its mode. Error: `store.failed`. */
async function replace(file: string, text: string): Promise<void> {
  try {
    await makeDirectory(dirname(file), { mode: 0o700 });
    const target = await realpath(file).catch(() => file);
    const mode = (await stat(target).catch(() => null))?.mode ?? 0o600;
    await writeDurably(target, text, { mode: mode & 0o777 });
  } catch (cause) {
    throw new BrigError(`${file} cannot be written: ${systemReason(cause)}`, {
      code: "store.failed",
      errno: errnoOf(cause),
      cause,
    });
  }
}

/** Error: `usage.invalid`. */
function pathOf(key: string): KeyPath {
  const path = configKey(key);
  if (path !== null) return path;
  throw invalidUsage(
    `${JSON.stringify(key)} is no key`,
    "for example: model, or sandbox_workspace_write.network_access",
  );
}
