import { createProgress } from "../../lib/terminal/progress.js";
import type { OpenedSandbox, Sandbox, SandboxSettings, StartOptions } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";
import { describeError } from "../display/error-text.js";
import { egressChoice, requireUsed } from "../egress/secret-option.js";
import { fitted } from "../render.js";
import { flaggedSettings, type SandboxFlags } from "./sandbox-flags.js";

/** Shows progress on a terminal only: otherwise stderr belongs to the command. */
export async function openFlaggedSandbox(flags: SandboxFlags, context: CliContext): Promise<Sandbox> {
  const unresolved = { ...flaggedSettings(flags, context), ...egressChoice(flags.secret, context) };
  const progress = createProgress(context.stderr, { usesColour: !context.environment.forbidsColor });
  if (context.stderr.isTTY === true) progress.step("starting the sandbox");
  try {
    return await openSandbox(async () => {
      const { resolveSettings } = await import("../../sandbox/index.js");
      const settings = await resolveSettings(unresolved);
      requireUsed(flags.secret, settings);
      return settings;
    }, context);
  } finally {
    progress.close();
  }
}

/**
 * Connects to the engine while the rest of the program is loaded. `from`: the kept state that the copy-on-write
 * workspace begins with.
 */
export async function openSandbox(
  settings: () => SandboxSettings | Promise<SandboxSettings>,
  { environment, signal, stderr }: Pick<CliContext, "environment" | "signal" | "stderr">,
  from: { snapshot: string; point: number | undefined } | null = null,
): Promise<Sandbox> {
  const { connectEngine } = await import("./early-engine.js");
  const engine = connectEngine({ env: environment, asksEarly: true });
  engine.catch(() => undefined);
  await questionsSent();
  const start: StartOptions = {
    engine,
    signal,
    keepsChanges: true,
    onWarning: (warning) => {
      stderr.write(fitted(stderr, describeError(warning, { showsCauses: false })));
    },
  };
  const opened = await (from === null
    ? openPlain(settings, start)
    : openKept(settings, { ...from, brigHome: environment.brigHome, start }));
  const { sandboxFrom } = await import("../../sandbox/index.js");
  return sandboxFrom(opened);
}

async function openPlain(
  settings: () => SandboxSettings | Promise<SandboxSettings>,
  start: StartOptions,
): Promise<OpenedSandbox> {
  const { openSandbox: open } = await import("../../sandbox/index.js");
  return await open(settings(), start);
}

async function openKept(
  settings: () => SandboxSettings | Promise<SandboxSettings>,
  kept: { snapshot: string; point: number | undefined; brigHome: string; start: StartOptions },
): Promise<OpenedSandbox> {
  const { openFromSnapshot } = await import("../../sandbox/index.js");
  const { snapshot: id, point: at, ...rest } = kept;
  return await openFromSnapshot(async () => await settings(), { id, at, ...rest });
}

/**
 * Waits two turns of the event loop, in which the engine's socket connects and sends the requests. Loading
 * code, which follows, blocks the process.
 */
async function questionsSent(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export function keptNote(sandbox: Sandbox): string {
  return `brig: the container ${sandbox.containerId.slice(0, 12)} keeps running; brig gc --kept removes it\n`;
}
