import { resolve } from "node:path";
import type { AgentSettings, SessionHost } from "../../agent/index.js";
import type { BrigError } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import type { Sandbox } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";
import { describeError } from "../error-text.js";
import { keptNote } from "../open-sandbox.js";
import { publishPorts } from "../ports/published-ports.js";
import type { PublishedPort } from "../ports/sandbox-ports.js";
import { say } from "../render.js";
import { startTelemetry } from "../telemetry.js";
import type { AgentFlags } from "./agent-flags.js";
import { configChoice } from "./config-choice.js";
import { readOutputSchema } from "./output-schema.js";
import { commandDirectory, flaggedSettings } from "./sandbox-flags.js";

/** The settings that the flags of a command choose. Reads the file of the output schema. Error: `usage.invalid`. */
export async function agentSettings(flags: AgentFlags, context: CliContext): Promise<AgentSettings> {
  const { cwd, signal } = context;
  const absolute = (file: string | undefined) => (file === undefined ? undefined : resolve(cwd, file));
  const sandbox = flaggedSettings(flags, context);
  const { profile, overrides } = configChoice(flags, context);
  const schema = absolute(flags.outputSchema);
  return {
    ...flags.caller,
    sandbox,
    directory: commandDirectory(flags),
    profile,
    overrides,
    model: flags.model,
    approvalPolicy: flags.askForApproval,
    instructionsFile: absolute(flags.instructionsFile),
    outputSchema: schema === undefined ? undefined : await readOutputSchema(schema, signal, context),
    script: absolute(flags.script),
    isEphemeral: flags.ephemeral,
    recordsTree: flags.treeRecord,
  };
}

/** A program that shows warnings on stderr, and publishes ports of each session's first sandbox, and after its end of the next. */
export function sessionHost(
  context: Pick<CliContext, "environment" | "cwd" | "signal" | "stderr" | "beforeEnd">,
  { publish }: { publish?: readonly PublishedPort[] | undefined } = {},
): SessionHost {
  const { environment, cwd, signal, stderr } = context;
  let hasPorts = false;
  return {
    environment,
    cwd,
    signal,
    warn: (warning) => say(stderr, warningText(warning)),
    onConfig: (config) => startTelemetry(config, context),
    async onSandbox(sandbox: Sandbox, { threadId: session }) {
      // Loaded with the sandbox, not before the first request to the model.
      const { settingsOf } = await import("../../sandbox/index.js");
      if (settingsOf(sandbox).keep) await say(stderr, keptNote(sandbox));
      const isFirst = !hasPorts;
      hasPorts = true;
      await publishPorts(
        sandbox,
        {
          publish: isFirst ? publish : [],
          session,
          command: "brig run",
          onClose: () => {
            if (isFirst) hasPorts = false;
          },
        },
        context,
      );
    },
  };
}

/** A warning of a session, as it is shown to a person. */
export function warningText(warning: string | BrigError): string {
  return typeof warning === "string"
    ? `brig: ${neutralise(warning)}\n`
    : describeError(warning, { showsCauses: false });
}
