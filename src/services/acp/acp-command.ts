import type { Command } from "commander";
import type { CliContext, DefineCommand } from "../../command/index.js";
import {
  type AgentFlags,
  addConfigOptions,
  addLimitOptions,
  addModelOptions,
  addVariableOptions,
  agentSettings,
  clientInput,
  collect,
} from "../../command/index.js";
import { SANDBOX_MODES } from "../../sandbox/index.js";
import { readVersion } from "../../version.js";
import type { TerminalParts } from "./session-opener.js";

interface AcpFlags extends AgentFlags {
  login?: boolean;
}

/** `loadParts` is called when the command runs, since only then its parts are needed. */
export function defineAcp(loadParts: () => Promise<TerminalParts>): DefineCommand {
  return (command, context) =>
    addOptions(command).action(async (flags: AcpFlags) => {
      const parts = await loadParts();
      await (flags.login === true ? parts.logIn(flags, context) : serve(flags, parts, context));
    });
}

function addOptions(command: Command): Command {
  return addVariableOptions(addLimitOptions(addModelOptions(addConfigOptions(command), "on-request")))
    .option("-s, --sandbox <mode>", `what a sandbox may do at first: ${SANDBOX_MODES.join(", ")}`)
    .option("--container-image <image>", "the containers' image (default: brig/base)")
    .option("--runtime <name>", "the OCI runtime, for example runsc")
    .option("--network <setting>", "none, full, allowlist:HOST,… or learn, if the policy permits it")
    .option("--policy <file>", "a policy file instead of a mode")
    .option("--add-dir <dir>", "another writable directory; may be repeated", collect)
    .option("--script <file>", "play the replies in a script instead of calling a model")
    .option("--ephemeral", "do not save the sessions")
    .option("--login", "log in with ChatGPT in this terminal, and end")
    .addHelpText("after", HELP);
}

const HELP = `
An editor starts this program by itself: see docs/acp.md for how to tell it so. It speaks the Agent Client Protocol on
standard input and output. Each session works in the directory that the editor names, in a container of its own.`;

async function serve(flags: AcpFlags, parts: TerminalParts, context: CliContext): Promise<void> {
  const [{ serveAcp }, { sessionOpener }, { readHostProcesses }, { hostname }] = await Promise.all([
    import("./serve-acp.js"),
    import("./open-sessions.js"),
    import("../../lib/owner.js"),
    import("node:os"),
  ]);
  await serveAcp({
    input: clientInput(context),
    output: context.stdout,
    opener: sessionOpener(await agentSettings(flags, context), parts, { flags, context }),
    version: readVersion(),
    processes: await readHostProcesses(hostname()),
    signal: context.signal,
  });
}
