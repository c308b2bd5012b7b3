import type { BrigError } from "../errors.js";
import type { Environment } from "../lib/env.js";
import type { OnCopied } from "./changes/copied-changes.js";
import type { OpenedSandbox, StartOptions } from "./open-sandbox.js";
import type { Sandbox } from "./sandbox.js";
import type { SandboxSettings } from "./settings/sandbox-settings.js";

interface Opening {
  environment: Environment;
  signal: AbortSignal;
  onWarning(warning: BrigError): void;
  onCopied?: OnCopied | undefined;
  /** See `StartOptions`. */
  lasting?: string | undefined;
  sealKey?: Buffer | undefined;
  /** The kept state that a copy-on-write workspace begins with. Default: the host's files. */
  from?: { snapshot: string; point: number | undefined } | null | undefined;
}

/** Opens a sandbox, and connects to the engine while the rest of the program is loaded. */
export async function connectAndOpen(
  settings: () => SandboxSettings | Promise<SandboxSettings>,
  { environment, signal, onWarning, onCopied, from, lasting, sealKey }: Opening,
): Promise<Sandbox> {
  const { connectEngine } = await import("./early-engine.js");
  const engine = connectEngine({ env: environment, asksEarly: true });
  engine.catch(() => undefined);
  await questionsSent();
  const own = { onWarning, onCopied, lasting, sealKey };
  const start: StartOptions = { engine, signal, keepsChanges: true, ...own };
  let opened: OpenedSandbox;
  if (from) {
    const { openFromSnapshot } = await import("./changes/sandbox-changes.js");
    const kept = { id: from.snapshot, at: from.point, brigHome: environment.brigHome, start };
    opened = await openFromSnapshot(async () => await settings(), kept);
  } else {
    const { openSandbox } = await import("./open-sandbox.js");
    opened = await openSandbox(settings(), start);
  }
  const { sandboxFrom } = await import("./sandbox.js");
  return sandboxFrom(opened);
}

/**
 * Waits two turns of the event loop, in which the engine's socket connects and sends the requests. Loading
 * code, which follows, blocks the process.
 */
async function questionsSent(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}
