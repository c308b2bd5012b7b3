import { createProgress } from "../../lib/terminal/progress.js";
import type { Sandbox } from "../../sandbox/sandbox.js";
import type { SandboxSettings } from "../../sandbox/settings/sandbox-settings.js";
import type { CliContext } from "../context.js";
import { describeError } from "../display/error-text.js";
import { fitted } from "../render.js";
import { flaggedSettings, type SandboxFlags } from "./sandbox-flags.js";

/** Shows progress on a terminal only: otherwise stderr belongs to the command. */
export async function openFlaggedSandbox(flags: SandboxFlags, context: CliContext): Promise<Sandbox> {
  const unresolved = flaggedSettings(flags, context);
  const progress = createProgress(context.stderr, { usesColour: !context.environment.forbidsColor });
  if (context.stderr.isTTY === true) progress.step("starting the sandbox");
  try {
    return await openSandbox(async () => {
      const { resolveSettings } = await import("../../sandbox/settings/resolve-settings.js");
      return await resolveSettings(unresolved);
    }, context);
  } finally {
    progress.close();
  }
}

/** Connects to the engine while the rest of the program is loaded. */
export async function openSandbox(
  settings: () => SandboxSettings | Promise<SandboxSettings>,
  { environment, signal, stderr }: CliContext,
): Promise<Sandbox> {
  const { connectEngine } = await import("./early-engine.js");
  const engine = connectEngine({ env: environment });
  engine.catch(() => undefined);
  const { openSandbox: open } = await import("../../sandbox/open-sandbox.js");
  const opened = await open(settings(), {
    engine,
    signal,
    onWarning: (warning) => {
      stderr.write(fitted(stderr, describeError(warning, { showsCauses: false })));
    },
  });
  const { sandboxFrom } = await import("../../sandbox/sandbox.js");
  return sandboxFrom(opened);
}

export function keptNote(sandbox: Sandbox): string {
  return `brig: the container ${sandbox.containerId.slice(0, 12)} keeps running; brig gc --kept removes it\n`;
}
