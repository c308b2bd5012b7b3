import { resolve } from "node:path";
import type { Command } from "commander";
import type { ConfigChoice } from "../../agent/index.js";
import { parseOverride } from "../../agent/index.js";
import type { CliContext } from "../context.js";
import { collect } from "./option-values.js";

/** The flags of every command that reads the configuration. */
export interface ConfigFlags {
  profile?: string | undefined;
  config?: readonly string[] | undefined;
  cd?: string | undefined;
}

export function addConfigOptions(command: Command): Command {
  return command
    .option("-p, --profile <name>", "the profile of config.toml to use")
    .option(
      "-c, --config <key=value>",
      "override a key of config.toml, with a TOML value; may be repeated",
      collect,
    );
}

/** The workspace is the directory of `-C`, or else the current one. Error: `usage.invalid` for a wrong `-c`. */
export function configChoice({ profile, config, cd }: ConfigFlags, { cwd }: CliContext): ConfigChoice {
  return { profile, overrides: config?.map(parseOverride), cwd, workspace: resolve(cwd, cd ?? ".") };
}
