import { type Command, InvalidArgumentError } from "commander";
import type { CliContext } from "../context.js";
import { collect } from "./option-values.js";

/** The flags of every command that opens a sandbox. */
export interface VariableFlags {
  env?: Record<string, string>;
  /** Only until the action of the command: `readEnvFiles` turns it into `env`. */
  envFile?: string[];
}

export function addVariableOptions(command: Command): Command {
  return command
    .option(
      "-e, --env <name=value>",
      "set an environment variable for commands; may be repeated",
      collectVariable,
    )
    .option(
      "--env-file <file>",
      "set those in a file: NAME=VALUE on each line, or NAME alone for yours of that name; may be repeated",
      collect,
    );
}

function collectVariable(assignment: string, earlier: Record<string, string> = {}): Record<string, string> {
  const at = assignment.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return { ...earlier, [assignment.slice(0, at)]: assignment.slice(at + 1) };
}

/**
 * Reads the files of `--env-file` before the command runs, as if their variables had been given by `--env`. `--env` takes
 * precedence over the files, and a later file over an earlier one. Error: `usage.invalid`.
 */
export async function readEnvFiles(command: Command, context: CliContext): Promise<void> {
  const { env, envFile: files = [] } = command.opts<VariableFlags>();
  const { readEnvFile } = await import("./env-file.js");
  const variables: Record<string, string> = {};
  for (const file of files) Object.assign(variables, await readEnvFile(file, context));
  command.setOptionValue("env", { ...variables, ...env });
  command.setOptionValue("envFile", undefined);
}
