import type { BrigError } from "../errors.js";
import { createProgress } from "../lib/terminal/progress.js";
import type { Receipt, ResumedCommand, Sandbox, SandboxSettings, StartOptions } from "../sandbox/index.js";
import { connectAndOpen } from "../sandbox/index.js";
import { ChangesWork } from "./changes-work.js";
import type { CliContext } from "./context.js";
import { describeError } from "./error-text.js";
import { flaggedSettings, type SandboxFlags } from "./flags/sandbox-flags.js";
import { egressChoice, requireUsed } from "./flags/secret-option.js";
import { fitted } from "./render.js";

/** How another process can go on with a sandbox. Default: none can. */
type LastingStart = Pick<StartOptions, "lasting" | "sealKey">;

/** Shows progress on a terminal only: otherwise stderr belongs to the command. */
export async function openFlaggedSandbox(
  flags: SandboxFlags,
  context: CliContext,
  lasting: LastingStart = {},
): Promise<Sandbox> {
  const progress = createProgress(context.stderr, { usesColour: !context.environment.forbidsColor });
  if (context.stderr.isTTY === true) progress.step("starting the sandbox");
  try {
    return await openSandbox(flagsAsSettings(flags, context), context, lasting);
  } finally {
    progress.close();
  }
}

/** Goes on with a sandbox that was opened with the same flags and this directory by a process that is gone. Errors: those of `resumeLasting`. */
export async function resumeFlaggedSandbox(
  flags: SandboxFlags,
  context: CliContext,
  { lasting, sealKey }: LastingStart & { lasting: string },
): Promise<{ sandbox: Sandbox; commands: ResumedCommand[] }> {
  const { connectEngine, resolveSettings, resumeLasting } = await import("../sandbox/index.js");
  const { environment, signal } = context;
  const engine = connectEngine({ env: environment });
  engine.catch(() => undefined);
  const settings = await resolveSettings({ ...flaggedSettings(flags, context), withoutEgress: true });
  const options = { engine, signal, keepsChanges: true, onWarning: warnOn(context), lasting, sealKey };
  return await resumeLasting(lasting, { settings, options });
}

function flagsAsSettings(flags: SandboxFlags, context: CliContext): () => Promise<SandboxSettings> {
  const unresolved = { ...flaggedSettings(flags, context), ...egressChoice(flags.secret, context) };
  return async () => {
    const { resolveSettings } = await import("../sandbox/index.js");
    const settings = await resolveSettings(unresolved);
    requireUsed(flags.secret, settings);
    return settings;
  };
}

/** Opens a sandbox whose warnings are shown on stderr. */
export async function openSandbox(
  settings: () => SandboxSettings | Promise<SandboxSettings>,
  { environment, signal, stderr }: Pick<CliContext, "environment" | "signal" | "stderr">,
  lasting: LastingStart = {},
): Promise<Sandbox> {
  return await connectAndOpen(settings, { environment, signal, ...lasting, onWarning: warnOn({ stderr }) });
}

function warnOn({ stderr }: Pick<CliContext, "stderr">): (warning: BrigError) => void {
  return (warning) => {
    stderr.write(fitted(stderr, describeError(warning, { showsCauses: false })));
  };
}

/** Ends the sandbox, which keeps what was changed in a copy-on-write workspace. Shown on a terminal only, for the same reason. */
export async function closeShown(sandbox: Sandbox, context: CliContext): Promise<Receipt> {
  using shown =
    context.stderr.isTTY === true
      ? new ChangesWork(context, "ending the sandbox", { followsOutput: true })
      : null;
  return await sandbox.close({ onCopied: shown?.onCopied });
}

export function keptNote(sandbox: Sandbox): string {
  return `brig: the container ${sandbox.containerId.slice(0, 12)} keeps running; brig gc --kept removes it\n`;
}
