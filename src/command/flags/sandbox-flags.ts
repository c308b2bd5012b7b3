import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { invalidUsage } from "../../errors.js";
import type { GitAccess, UnresolvedSettings, WorkspaceKind } from "../../sandbox/index.js";
import { GIT_ACCESSES, isSandboxMode, SANDBOX_MODES, WORKSPACE_KINDS } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";
import { addLimitOptions, flaggedLimits, type LimitFlags } from "./limit-options.js";
import { collect } from "./option-values.js";
import type { GivenSecret } from "./secret-option.js";
import { addVariableOptions, type VariableFlags } from "./variable-options.js";

/** The flags of every command that opens a sandbox. */
export interface SandboxFlags extends LimitFlags, VariableFlags {
  sandbox?: string;
  cd?: string;
  containerImage?: string;
  dockerfile?: string;
  devcontainer?: boolean;
  devcontainerEnv?: string[];
  gpus?: string;
  runtime?: string;
  user?: string;
  network?: string;
  policy?: string;
  workspace?: string;
  git?: string;
  addDir?: string[];
  unprotected?: string[];
  keep?: boolean;
  secret?: GivenSecret[];
  setup?: string;
  setupNetwork?: string;
}

export function addSandboxOptions(command: Command): Command {
  return addContainerOptions(command)
    .option(
      "-C, --cd <dir>",
      "the workspace (default: the current directory); with --workspace none, where commands start",
    )
    .option(
      "--workspace <kind>",
      "bind: mount the directory itself (default); overlay: copy-on-write, the directory stays as it is; none: no workspace",
    )
    .option(
      "--git <access>",
      "protected: as the policy says (default); branch: commits are possible, and arrive as the branch brig/ID",
    )
    .option("--add-dir <dir>", "another writable directory; may be repeated", collect)
    .option(
      "--unprotected <path>",
      "start although this protected path cannot be kept from being changed; may be repeated",
      collect,
    )
    .option("--keep", "keep the container running afterwards");
}

/** Adds the options that do not concern the workspace. */
export function addContainerOptions(command: Command): Command {
  command
    .option("-s, --sandbox <mode>", `what the sandbox may do: ${SANDBOX_MODES.join(", ")}`)
    .option("--policy <file>", "a policy file instead of a mode")
    .option("--network <setting>", "none, full, allowlist:HOST,… or learn, if the policy permits it")
    .option(
      "--container-image <image>",
      "the container's image, or a directory with a Dockerfile such as ./ (default: brig/base)",
    )
    .option("--dockerfile <file>", "build the image from this Dockerfile and the files beside it")
    .option("--devcontainer", "do as the workspace's devcontainer.json says, as far as the policy permits")
    .option(
      "--devcontainer-env <name>",
      "let devcontainer.json read your variable of this name; may be repeated",
      collect,
    )
    .option(
      "--gpus <number>",
      "graphics processors of the engine's machine: all, or how many (default: none)",
    )
    .option("--runtime <name>", "the OCI runtime, for example runsc")
    .option("--user <uid:gid>", "whom commands run as (default: whoever runs brig)");
  return addVariableOptions(addLimitOptions(command));
}

export function setupOption(): Option {
  return new Option(
    "--setup <command>",
    "a shell command that prepares the sandbox first; if it fails, nothing else is run",
  );
}

export function setupNetworkOption(): Option {
  return new Option(
    "--setup-network <setting>",
    "the network of the --setup command (default: that of --network)",
  );
}

export const READS_ONLY_EGRESS =
  "\nThis command reads no config.toml, except for [egress] with a list of allowed hosts: options that are not given have their defaults.\n";

/** Resolves relative paths against the current directory. Error: `usage.invalid`. */
export function flaggedSettings(flags: SandboxFlags, { cwd, environment }: CliContext): UnresolvedSettings {
  const kind = workspaceKind(flags.workspace);
  if (flags.sandbox !== undefined && flags.policy !== undefined)
    throw invalidUsage("--sandbox and --policy were both given", "leave one of them out");
  return {
    workspace: kind === "none" ? null : resolve(cwd, flags.cd ?? "."),
    workspaceKind: kind,
    mode: sandboxMode(flags.sandbox),
    policyFile: flags.policy === undefined ? undefined : resolve(cwd, flags.policy),
    git: gitAccess(flags.git),
    image: flags.containerImage,
    gpus: flags.gpus,
    runtime: flags.runtime,
    limits: flaggedLimits(flags),
    user: flags.user,
    network: flags.network,
    setup: flaggedSetup(flags),
    addDirs: flags.addDir?.map((dir) => resolve(cwd, dir)),
    unprotected: flags.unprotected,
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
  throw invalidUsage(
    `"${mode}" is not a sandbox mode`,
    `use one of ${SANDBOX_MODES.join(", ")}, or --policy FILE`,
  );
}

function flaggedSetup({ setup, setupNetwork: network }: SandboxFlags): UnresolvedSettings["setup"] {
  if (setup !== undefined) return { command: setup === "" ? [] : ["/bin/sh", "-c", setup], network };
  if (network === undefined) return undefined;
  throw invalidUsage(
    "--setup-network is of no use without --setup",
    "add --setup COMMAND, or use --network for the command itself",
  );
}

/** Undefined if the flag is not given. */
function workspaceKind(kind: string | undefined): WorkspaceKind | undefined {
  const known = WORKSPACE_KINDS.find((one) => one === kind);
  if (known !== undefined || kind === undefined) return known;
  const message =
    kind === "copy"
      ? `a workspace of kind "${kind}" is not supported`
      : `"${kind}" is not a kind of workspace`;
  throw invalidUsage(
    message,
    `use --workspace ${WORKSPACE_KINDS.slice(0, -1).join(", ")} or ${WORKSPACE_KINDS.at(-1)}`,
  );
}

/** Undefined if the flag is not given. */
function gitAccess(access: string | undefined): GitAccess | undefined {
  const known = GIT_ACCESSES.find((one) => one === access);
  if (known !== undefined || access === undefined) return known;
  throw invalidUsage(`"${access}" is not a way to use git`, `use --git ${GIT_ACCESSES.join(" or ")}`);
}
