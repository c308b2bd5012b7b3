import { type Command, Option } from "commander";
import { SANDBOX_MODES } from "../../sandbox/index.js";
import { readVersion } from "../../version.js";
import { addLimitOptions } from "../container/limit-options.js";
import { addVariableOptions } from "../container/variable-options.js";
import type { CliContext } from "../context.js";
import { clientInput } from "../services/client-input.js";
import { type AgentFlags, addModelOptions } from "../setup/agent-flags.js";
import { agentSettings } from "../setup/agent-settings.js";
import { addConfigOptions } from "../setup/config-choice.js";
import { collect } from "../setup/option-values.js";

interface AcpFlags extends AgentFlags {
  login?: boolean;
}

export function defineAcp(command: Command, context: CliContext): void {
  addVariableOptions(addLimitOptions(addModelOptions(addConfigOptions(command), "on-request")))
    .option("-s, --sandbox <mode>", `what a sandbox may do at first: ${SANDBOX_MODES.join(", ")}`)
    .option("--container-image <image>", "the containers' image (default: brig/base)")
    .option("--runtime <name>", "the OCI runtime, for example runsc")
    .option("--network <setting>", "none, full, allowlist:HOST,… or learn, if the policy permits it")
    .option("--policy <file>", "a policy file instead of a mode")
    .addOption(
      new Option("--add-dir <dir>", "another writable directory; may be repeated").argParser(collect),
    )
    .option("--script <file>", "play the replies in a script instead of calling a model")
    .option("--ephemeral", "do not save the sessions")
    .option("--login", "log in with ChatGPT in this terminal, and end")
    .addHelpText("after", HELP)
    .action((flags: AcpFlags) => (flags.login === true ? logIn(flags, context) : serve(flags, context)));
}

const HELP = `
An editor starts this program by itself: see docs/acp.md for how to tell it so. It speaks the Agent Client Protocol on
standard input and output. Each session works in the directory that the editor names, in a container of its own.`;

async function serve(flags: AcpFlags, context: CliContext): Promise<void> {
  const [{ serveAcp }, { sessionOpener }, { readHostProcesses }, { hostname }] = await Promise.all([
    import("../../services/index.js"),
    import("./session-opener.js"),
    import("../../lib/owner.js"),
    import("node:os"),
  ]);
  await serveAcp({
    input: clientInput(context),
    output: context.stdout,
    opener: sessionOpener(await agentSettings(flags, context), { flags, context }),
    version: readVersion(),
    processes: await readHostProcesses(hostname()),
    signal: context.signal,
  });
}

async function logIn({ config = [] }: AcpFlags, context: CliContext): Promise<void> {
  const { defaultTimeoutMs, logInAtIssuer } = await import("../commands/login/login.js");
  await logInAtIssuer({ config, browser: true, timeout: defaultTimeoutMs }, context);
}
