import { type Command, InvalidArgumentError, Option } from "commander";
import type { CliContext } from "../../command/index.js";
import {
  addSandboxOptions,
  durationArgument,
  publishOption,
  READS_ONLY_EGRESS,
  secretOption,
  setupNetworkOption,
  setupOption,
} from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { formatBytes, parseBytes, SIZE_WORDS } from "../../lib/bytes.js";
import { MAX_TIMEOUT_MS } from "../../sandbox/index.js";
import { DEFAULT_HOME_BYTES } from "./sessions/home-size.js";
import { CONFIG_ACCESSES, type WrapFlags } from "./wrap-flags.js";

export function defineWrap(command: Command, context: CliContext): void {
  addSandboxOptions(command)
    .argument("[command...]", "the agent's program and its arguments")
    .usage("[options] -- COMMAND [ARGUMENT…]")
    .passThroughOptions()
    .option(
      "--agent <agent>",
      "which agent it is, if its program has another name: codex, claude, opencode, gemini, aider",
    )
    .option("--name <name>", "keep the agent's home directory under this name, so that it can be resumed")
    .option("--resume <name>", "start the agent again in the home directory of that name")
    .addOption(
      new Option(
        "--config-dir <access>",
        "the agent's configuration: copied without credentials (default), mounted read-only, or none",
      ).choices(CONFIG_ACCESSES),
    )
    .addOption(secretOption())
    .addOption(setupOption())
    .addOption(setupNetworkOption())
    .option(
      "--timeout <time>",
      "stop the agent after this time: 90, 1.5, 30s, 2m",
      durationArgument({ atMostMs: MAX_TIMEOUT_MS }),
    )
    .option(
      "--home-limit <size>",
      `start no session whose kept home takes more on the disk: ${SIZE_WORDS} (default: ${formatBytes(DEFAULT_HOME_BYTES)})`,
      sizeArgument,
    )
    .addOption(publishOption())
    .option("--list", "list the sessions that have a name")
    .option("--remove <name>", "remove a session with all that its agent has kept")
    .option("--json", "with --list: print JSON")
    .addHelpText("after", READS_ONLY_EGRESS + help)
    .action(async (argv: string[], flags: WrapFlags) => {
      refuseContradictions(argv, flags);
      if (flags.list === true || flags.remove !== undefined) {
        const { listWrapped, removeWrapped } = await import("./sessions/session-commands.js");
        return await (flags.remove === undefined
          ? listWrapped(flags, context)
          : removeWrapped(flags.remove, context));
      }
      const { runWrapped } = await import("./run-wrapped.js");
      context.setExitStatus(await runWrapped(argv, flags, context));
    });
}

const help = `
Of an agent that brig knows, the program of this machine is mounted if the image has none, its model's hosts are
allowed, and its key stays outside: the agent sees a placeholder. Of any other, say so with --network and --secret.

Exit status: that of the agent; 124 if it timed out, 125 if brig failed, 127 if the program is not found.`;

/** Error: `usage.invalid`. */
function refuseContradictions(argv: readonly string[], flags: WrapFlags): void {
  const actions = ["name", "resume", "list", "remove"] as const;
  const [first, second] = actions.filter((one) => flags[one] !== undefined);
  if (second !== undefined)
    throw invalidUsage(`--${first} and --${second} cannot be combined`, "leave one of them out");
  if (flags.homeLimit !== undefined && flags.name === undefined && flags.resume === undefined)
    throw invalidUsage(
      "--home-limit needs --name or --resume",
      "only the home of a session with a name is kept",
    );
  if (flags.json === true && flags.list !== true)
    throw invalidUsage("--json belongs to --list", "the output of an agent is its own: see its options");
  const needsCommand = first === undefined || first === "name";
  if (needsCommand && (argv[0] ?? "") === "")
    throw invalidUsage("the command is missing", "for example: brig wrap -- codex; see: brig wrap --help");
  if ((first === "list" || first === "remove") && argv.length > 0)
    throw invalidUsage(`--${first} takes no command`, "leave it out");
}

function sizeArgument(text: string): number {
  const bytes = parseBytes(text);
  if (bytes !== null && bytes > 0) return bytes;
  throw new InvalidArgumentError(`It must be ${SIZE_WORDS}.`);
}
