import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { BrigError } from "../../errors.js";
import { createProgress } from "../../lib/terminal/progress.js";
import { isSandboxMode, SANDBOX_MODES } from "../../policy/modes.js";
import type { OpenedSandbox } from "../../sandbox/open-sandbox.js";
import type { Sandbox } from "../../sandbox/sandbox.js";
import type { SandboxOptions } from "../../sandbox/sandbox-options.js";
import type { CliContext } from "../context.js";
import { describeError } from "../display/error-text.js";
import { fitted } from "../render.js";
import { collect } from "./option-values.js";

/** The flags every command shares that opens a sandbox. */
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
      "the workspace (default: the current directory); without one, where commands start",
    )
    .option("--container-image <image>", "the image to run (default: brig/base)")
    .option("--runtime <name>", "the OCI runtime, for example runsc")
    .option("--network <setting>", "none or full, where the policy permits it")
    .option("--policy <file>", "a policy file instead of a mode")
    .option("--workspace <kind>", "bind: the directory itself (default); none: no workspace")
    .addOption(
      new Option("--add-dir <dir>", "a further writable directory; may be repeated").argParser(collect),
    )
    .option("--keep", "leave the container running afterwards")
    .addOption(
      new Option("--env <name=value>", "a variable for commands; may be repeated").argParser(collectVariable),
    );
}

/** Of the help of commands that no configuration concerns. */
export const READS_NO_CONFIGURATION =
  "\nWhat the flags do not say is as it is by default: no config.toml is read.\n";

/** Turns the flags into what `Sandbox.create` takes. Errors: `usage.invalid`. */
export function sandboxOptions(flags: SandboxFlags, context: CliContext): SandboxOptions {
  const { cwd, environment, signal } = context;
  const hasWorkspace = workspaceKind(flags.workspace) === "bind";
  return {
    workspace: hasWorkspace ? resolve(cwd, flags.cd ?? ".") : undefined,
    workspaceKind: workspaceKind(flags.workspace),
    mode: sandboxMode(flags.sandbox),
    policyFile: flags.policy === undefined ? undefined : resolve(cwd, flags.policy),
    image: flags.containerImage,
    runtime: flags.runtime,
    network: flags.network,
    addDirs: flags.addDir?.map((dir) => resolve(cwd, dir)),
    keep: flags.keep,
    env: flags.env,
    environment,
    signal,
    onWarning: (warning) => {
      context.stderr.write(fitted(context.stderr, describeError(warning, { showsCauses: false })));
    },
  };
}

/** Where commands start: `-C` names a directory inside the sandbox when there is no workspace. */
export function commandDirectory(flags: SandboxFlags): string | undefined {
  return workspaceKind(flags.workspace) === "none" ? flags.cd : undefined;
}

/** Creates the sandbox, with a live line on a terminal. Elsewhere stderr belongs to the command. */
export async function openSandbox(flags: SandboxFlags, context: CliContext): Promise<Sandbox> {
  const given = sandboxOptions(flags, context);
  const { connectEngine } = await import("./early-engine.js");
  // It answers while the rest of the program is loaded.
  const engine = connectEngine({ env: context.environment });
  engine.catch(() => undefined);
  const { openSandbox: open } = await import("../../sandbox/open-sandbox.js");
  const options = { ...given, engine };
  if (context.stderr.isTTY !== true) return await asSandbox(open(options));
  const progress = createProgress(context.stderr, { usesColour: !context.environment.forbidsColor });
  progress.step("starting the sandbox");
  try {
    return await asSandbox(open({ ...options, onProgress: progress.step }));
  } finally {
    progress.close();
  }
}

async function asSandbox(opening: Promise<OpenedSandbox>): Promise<Sandbox> {
  const opened = await opening;
  return (await import("../../sandbox/sandbox.js")).sandboxFrom(opened);
}

/** With `--keep`: how to come back to the container, and how to get rid of it. */
export function keptNote(sandbox: Sandbox): string {
  return `brig: the container ${sandbox.containerId.slice(0, 12)} keeps running; brig gc --kept removes it\n`;
}

function sandboxMode(mode: string | undefined): SandboxOptions["mode"] {
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
