import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { ConfigChoice } from "../../config/settings/load-config.js";
import type { CliContext } from "../context.js";
import { collect } from "./option-values.js";

/** The flags by which every command that reads the configuration chooses among it. */
export interface ConfigFlags {
  profile?: string | undefined;
  config?: readonly string[] | undefined;
  cd?: string | undefined;
}

export function addConfigOptions(command: Command): Command {
  return command
    .option("-p, --profile <name>", "a profile of config.toml")
    .addOption(
      new Option(
        "-c, --config <key=value>",
        "a key of config.toml, the value as TOML; may be repeated",
      ).argParser(collect),
    );
}

/** The configuration of a command at work in `-C`, or in the current directory. */
export function configChoice({ profile, config, cd }: ConfigFlags, { cwd }: CliContext): ConfigChoice {
  return { profile, overrides: config, cwd, workspace: resolve(cwd, cd ?? ".") };
}
