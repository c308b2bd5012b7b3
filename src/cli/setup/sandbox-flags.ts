import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { BrigError } from "../../errors.js";
import { isSandboxMode, SANDBOX_MODES } from "../../policy/modes.js";
import type { UnresolvedSettings } from "../../sandbox/settings/resolve-settings.js";
import type { CliContext } from "../context.js";
import { collect } from "./option-values.js";

/** The flags of every command that opens a sandbox. */
export interface SandboxFlags {
  sandbox?: string;
  cd?: string;
  containerImage?: string;
  runtime?: string;
  network?: string;
  policy?: string;
  workspace?: string;
  addDir?: string[];
  keep?: boolean;
  env?: Record<string, string>;
}

export function addSandboxOptions(command: Command): Command {
  return command
    .option("-s, --sandbox <mode>", `what the sandbox may do: ${SANDBOX_MODES.join(", ")}`)
    .option(
      "-C, --cd <dir>",
      "the workspace (default: the current directory); with --workspace none, where commands start",
    )
    .option("--container-image <image>", "the container's image (default: brig/base)")
    .option("--runtime <name>", "the OCI runtime, for example runsc")
    .option("--network <setting>", "none or full, if the policy permits it")
    .option("--policy <file>", "a policy file instead of a mode")
    .option("--workspace <kind>", "bind: mount the directory itself (default); none: no workspace")
    .addOption(
      new Option("--add-dir <dir>", "another writable directory; may be repeated").argParser(collect),
    )
    .option("--keep", "keep the container running afterwards")
    .addOption(
      new Option("--env <name=value>", "set an environment variable for commands; may be repeated").argParser(
        collectVariable,
      ),
    );
}

export const READS_NO_CONFIGURATION =
  "\nThis command reads no config.toml: options that are not given have their defaults.\n";

/** Resolves relative paths against the current directory. Error: `usage.invalid`. */
export function flaggedSettings(flags: SandboxFlags, { cwd, environment }: CliContext): UnresolvedSettings {
  const hasWorkspace = workspaceKind(flags.workspace) === "bind";
  if (flags.sandbox !== undefined && flags.policy !== undefined)
    throw new BrigError("--sandbox and --policy were both given", {
      code: "usage.invalid",
      hint: "leave one of them out",
    });
  return {
    workspace: hasWorkspace ? resolve(cwd, flags.cd ?? ".") : null,
    mode: sandboxMode(flags.sandbox),
    policyFile: flags.policy === undefined ? undefined : resolve(cwd, flags.policy),
    image: flags.containerImage,
    runtime: flags.runtime,
    network: flags.network,
    addDirs: flags.addDir?.map((dir) => resolve(cwd, dir)),
    keep: flags.keep,
    env: flags.env,
    environment,
  };
}

/** Without a workspace, `-C` names a directory inside the sandbox. */
export function commandDirectory(flags: SandboxFlags): string | undefined {
  return workspaceKind(flags.workspace) === "none" ? flags.cd : undefined;
}

function sandboxMode(mode: string | undefined): UnresolvedSettings["mode"] {
  if (mode === undefined || isSandboxMode(mode)) return mode;
  throw new BrigError(`"${mode}" is not a sandbox mode`, {
    code: "usage.invalid",
    hint: `use one of ${SANDBOX_MODES.join(", ")}, or --policy FILE`,
  });
}

function workspaceKind(kind = "bind"): "bind" | "none" {
  if (kind === "bind" || kind === "none") return kind;
  const isPlanned = kind === "overlay" || kind === "copy";
  throw new BrigError(
    isPlanned ? `a workspace of kind "${kind}" is not supported` : `"${kind}" is not a kind of workspace`,
    { code: "usage.invalid", hint: "use --workspace bind or --workspace none" },
  );
}

function collectVariable(assignment: string, earlier: Record<string, string> = {}): Record<string, string> {
  const at = assignment.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return { ...earlier, [assignment.slice(0, at)]: assignment.slice(at + 1) };
}
