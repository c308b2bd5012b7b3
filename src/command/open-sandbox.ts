import { createProgress } from "../lib/terminal/progress.js";
import type { Sandbox, SandboxSettings } from "../sandbox/index.js";
import { connectAndOpen } from "../sandbox/index.js";
import type { CliContext } from "./context.js";
import { describeError } from "./error-text.js";
import { flaggedSettings, type SandboxFlags } from "./flags/sandbox-flags.js";
import { egressChoice, requireUsed } from "./flags/secret-option.js";
import { fitted } from "./render.js";

/** Shows progress on a terminal only: otherwise stderr belongs to the command. */
export async function openFlaggedSandbox(flags: SandboxFlags, context: CliContext): Promise<Sandbox> {
  const unresolved = { ...flaggedSettings(flags, context), ...egressChoice(flags.secret, context) };
  const progress = createProgress(context.stderr, { usesColour: !context.environment.forbidsColor });
  if (context.stderr.isTTY === true) progress.step("starting the sandbox");
  try {
    return await openSandbox(async () => {
      const { resolveSettings } = await import("../sandbox/index.js");
      const settings = await resolveSettings(unresolved);
      requireUsed(flags.secret, settings);
      return settings;
    }, context);
  } finally {
    progress.close();
  }
}

/** Opens a sandbox whose warnings are shown on stderr. */
export async function openSandbox(
  settings: () => SandboxSettings | Promise<SandboxSettings>,
  { environment, signal, stderr }: Pick<CliContext, "environment" | "signal" | "stderr">,
): Promise<Sandbox> {
  return await connectAndOpen(settings, {
    environment,
    signal,
    onWarning: (warning) => {
      stderr.write(fitted(stderr, describeError(warning, { showsCauses: false })));
    },
  });
}

export function keptNote(sandbox: Sandbox): string {
  return `brig: the container ${sandbox.containerId.slice(0, 12)} keeps running; brig gc --kept removes it\n`;
}
