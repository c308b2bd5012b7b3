import { join } from "node:path";
import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { write } from "../../command/index.js";
import { BrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import { replaceFile } from "../../lib/files/replace-file.js";
import { addBrigEnvironment } from "./environments-toml.js";

interface SetupCodexFlags {
  program: string;
  print?: boolean;
}

const MAX_FILE_BYTES = 1024 * 1024;

export function defineSetupCodex(command: Command, context: CliContext): void {
  command
    .description("make Codex run its commands in brig: writes to its environments.toml")
    .option("--program <path>", "how Codex starts brig", "brig")
    .option("--print", "print the file as it would be, and write nothing")
    .addHelpText("after", HELP)
    .action(async (flags: SetupCodexFlags) => await setUpCodex(flags, context));
}

const HELP = `
The file is $CODEX_HOME/environments.toml (default: ~/.codex/environments.toml). What it has stays, comments included;
default, include_local and the environment "brig" are set. To go back, set include_local = true and default = "local".`;

async function setUpCodex({ program, print }: SetupCodexFlags, context: CliContext): Promise<void> {
  const { stdout, environment } = context;
  const file = join(environment.codexHome, "environments.toml");
  const { text, changes } = addBrigEnvironment(await readCurrent(file), { program, file });
  if (print === true) return await write(stdout, text);
  if (changes.length === 0) return await write(stdout, `nothing to change in ${file}\n`);
  await replaceFile(file, text);
  await write(stdout, [`wrote ${file}:`, ...changes.map((change) => `  ${change}`), ""].join("\n"));
}

async function readCurrent(file: string): Promise<string> {
  const read = await readTextFile(file, MAX_FILE_BYTES);
  if (read.kind === "text") return read.text;
  if (read.kind === "missing") return "";
  throw new BrigError(`${file} ${read.reason}`, { code: "config.invalid", cause: read.cause });
}
