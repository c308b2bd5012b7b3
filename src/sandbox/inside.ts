// What other parts of brig do with a sandbox beyond the methods that a program has: each has a name here, and nothing else of a sandbox's inside
// is handed out.
import type { Duplex } from "node:stream";
import { BrigError, isBrigError } from "../errors.js";
import { pause } from "../lib/time/pause.js";
import { applyKept, forkSandbox, openFromSnapshot } from "./changes/sandbox-changes.js";
import type { ApplyOptions, ApplyResult, ForkOptions } from "./changes/workspace-change.js";
import { asRefusal } from "./docker/engine-failure.js";
import type { Engine } from "./docker/engine-types.js";
import { SecretMask } from "./egress/secrets/secret-mask.js";
import { credentialsIn, type SentHeaders } from "./egress/secrets/sent-headers.js";
import type { LeftOptions, ResumedCommand, ResumeOptions } from "./lasting/resume-sandbox.js";
import type { SandboxEgress } from "./network/egress/sandbox-egress.js";
import { closeFirst, keepEgress, openSandbox, type StartOptions } from "./open-sandbox.js";
import { commandEnvironment } from "./plan/image-settings.js";
import type { SandboxPlan } from "./plan/plan.js";
import { commandContextOf, openedSandboxOf, type Sandbox, sandboxFrom } from "./sandbox.js";
import type { SandboxAbout } from "./sandbox-records.js";
import type { SandboxProcess, SpawnOptions } from "./sandbox-types.js";
import { aboutSandbox } from "./settings/resolve-settings.js";
import type { SandboxSettings } from "./settings/sandbox-settings.js";

/** Starts a sandbox from settings that are complete. Errors: those of `Sandbox.create`. */
export async function startSandbox(
  settings: SandboxSettings | Promise<SandboxSettings>,
  options: StartOptions,
): Promise<Sandbox> {
  return sandboxFrom(await openSandbox(settings, options));
}

/** Starts a sandbox with the files of a snapshot. Errors: those of `openFromSnapshot`. */
export async function startFromSnapshot(...snapshot: Parameters<typeof openFromSnapshot>): Promise<Sandbox> {
  return sandboxFrom(await openFromSnapshot(...snapshot));
}

/**
 * Goes on with a sandbox that a process had started with the option `lasting` before it was killed, and with the commands that
 * `spawnLasting` had started. Errors: those of `resumeSandbox`.
 */
export async function resumeLasting(
  directory: string,
  how: ResumeOptions,
): Promise<{ sandbox: Sandbox; commands: ResumedCommand[] }> {
  const { resumeSandbox } = await import("./lasting/resume-sandbox.js");
  const { opened, commands } = await resumeSandbox(directory, how);
  return { sandbox: sandboxFrom(opened), commands };
}

/** Ends what a process that is gone has left of a sandbox with which nobody is to go on. Error: `engine.failed`. */
export async function endLasting(directory: string, how: LeftOptions): Promise<void> {
  const { endLeft } = await import("./lasting/resume-sandbox.js");
  await endLeft(directory, how);
}

/** Freezes all processes of a sandbox, which keep their memory, until `unpauseSandbox`. Its calls wait. Error: `engine.failed`. */
export async function pauseSandbox(sandbox: Sandbox): Promise<void> {
  const { engine, containerId } = openedSandboxOf(sandbox);
  await untilSettled(async () => {
    try {
      await engine.pauseContainer(containerId);
      return true;
    } catch (error) {
      const isRefused = isBrigError(error) && asRefusal(error.cause)?.status === 409;
      if (!isRefused || (await engine.inspectContainer(containerId))?.running !== true) throw error;
      // It is paused already, or the engine takes it for that.
      return false;
    }
  });
}

/** Its processes go on; does nothing for a sandbox that is not paused. Error: `engine.failed`. */
export async function unpauseSandbox(sandbox: Sandbox): Promise<void> {
  const { engine, containerId } = openedSandboxOf(sandbox);
  await untilSettled(async () => {
    const state = await engine.inspectContainer(containerId);
    if (state?.paused === true) await engine.unpauseContainer(containerId);
    return state?.paused !== false;
  });
}

/**
 * Docker notes that a container is paused, or runs again, when it has done that, and once more when the runtime reports it. A report that comes after
 * the next change makes the noted state wrong, until that change is reported as well.
 */
const SETTLED_WITHIN_MS = 3000;
const LOOK_AGAIN_MS = 50;

async function untilSettled(isDone: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + SETTLED_WITHIN_MS;
  while (!(await isDone()) && performance.now() < until) await pause(LOOK_AGAIN_MS);
}

/** Lets another process go on with a sandbox, which runs on until its lease is over. It cannot be used any more. */
export async function letGoOfLasting(sandbox: Sandbox): Promise<void> {
  const { link, egress, warn } = openedSandboxOf(sandbox);
  link.onGone = () => undefined;
  // First, so that nothing more is sent or noted.
  link.close(
    new BrigError("the service ends, and the sandbox goes on with the next one", {
      code: "sandbox.gone",
      reason: "closed",
      hint: "ask again when the service is there",
    }),
  );
  await egress?.close().catch(warn);
}

/** A copy of a sandbox with a copy-on-write workspace, with which another process can go on from this directory. Errors: those of `fork`. */
export async function forkLasting(
  sandbox: Sandbox,
  options: ForkOptions & { lasting: string | undefined },
): Promise<Sandbox> {
  return sandboxFrom(await forkSandbox(openedSandboxOf(sandbox), options));
}

/** Starts a command that `resumeLasting` gives again, with its output, by its name. Errors: those of `sandbox.spawn`. */
export async function spawnLasting(
  sandbox: Sandbox,
  command: { name: string; argv: readonly string[]; options: SpawnOptions; about: unknown },
): Promise<SandboxProcess> {
  const { spawnNoted } = await import("./lasting/resume-sandbox.js");
  return spawnNoted(openedSandboxOf(sandbox), commandContextOf(sandbox), command);
}

/** Has `resumeLasting` give a command no more. */
export async function forgetLasting(sandbox: Sandbox, name: string): Promise<void> {
  const { forgetNoted } = await import("./lasting/resume-sandbox.js");
  forgetNoted(openedSandboxOf(sandbox), name);
}

/** The directory from which another process could go on with the sandbox; null if none could. */
export function lastingDirectoryOf(sandbox: Sandbox): string | null {
  const { journal, options } = openedSandboxOf(sandbox);
  return journal?.isWritten === true ? (options.lasting ?? null) : null;
}

/** The key that seals the secrets of a sandbox in its files. A process that has the key can go on with the sandbox. */
export function sealKeyOf(sandbox: Sandbox): Buffer | undefined {
  return openedSandboxOf(sandbox).options.sealKey;
}

/** The settings that a sandbox was started with. */
export function settingsOf(sandbox: Sandbox): SandboxSettings {
  return openedSandboxOf(sandbox).settings;
}

/** The container of a sandbox, for what the engine does with it. */
export function containerOf(sandbox: Sandbox): { engine: Engine; containerId: string; brigHome: string } {
  const { engine, containerId, settings } = openedSandboxOf(sandbox);
  return { engine, containerId, brigHome: settings.environment.brigHome };
}

/** The limits and the user of a sandbox, its placeholders, and the notices about what does not work in it. */
export function planOf(sandbox: Sandbox): Pick<
  SandboxPlan,
  "limits" | "user" | "notices" | "placeholders"
> & {
  /** The variables that its commands start with. */
  environment: ReturnType<typeof commandEnvironment>;
} {
  const { plan } = openedSandboxOf(sandbox);
  const { limits, user, notices, placeholders } = plan;
  return { limits, user, notices, placeholders, environment: commandEnvironment(plan) };
}

/** The secrets of a sandbox that its outputs are rid of: for another process of the same user, and nobody else. */
export function secretsOf(sandbox: Sandbox): string[] {
  return openedSandboxOf(sandbox).settings.inspection?.mask?.values ?? [];
}

/** What `brig ps` shows of a sandbox. */
export function aboutOf(sandbox: Sandbox): SandboxAbout {
  const { settings, plan } = openedSandboxOf(sandbox);
  return aboutSandbox(settings, plan);
}

/** The allow-list of a sandbox, which can be changed while it runs. Null with any other network. */
export function allowListOf(sandbox: Sandbox): SandboxEgress | null {
  return openedSandboxOf(sandbox).egress;
}

/**
 * The settings of a sandbox whose requests get these headers on their way out. Credentials in them are masked as secrets are. Servers may have
 * certificates of the authorities in these files. Error: `usage.invalid` for a file.
 */
export async function sendingHeaders(
  settings: SandboxSettings,
  { sent, caFiles }: { sent: readonly SentHeaders[]; caFiles: readonly string[] },
): Promise<SandboxSettings> {
  const { inspection, environment } = settings;
  const { readTrusted } = await import("./network/egress/read-egress.js");
  const mask = inspection?.mask ?? new SecretMask([]);
  mask.add(credentialsIn(sent));
  const others = { rules: [], secrets: [], ...inspection };
  const authorities = [...(inspection?.authorities ?? []), ...(await readTrusted(caFiles, environment))];
  return { ...settings, inspection: { ...others, authorities, mask, sentHeaders: sent } };
}

/** Replaces these headers. Error: `policy.not-enforced` for a sandbox without `sendingHeaders`, and without an allow-list. */
export async function setSentHeaders(sandbox: Sandbox, sent: readonly SentHeaders[]): Promise<void> {
  const opened = openedSandboxOf(sandbox);
  const { egress, settings } = opened;
  if (egress === null)
    throw new BrigError("requests of a sandbox without an allow-list get no headers", {
      code: "policy.not-enforced",
      hint: "create a sandbox with an allow-list",
    });
  settings.inspection?.mask?.add(credentialsIn(sent));
  egress.setSentHeaders(sent);
  if (settings.inspection) await keepEgress(opened, { ...settings.inspection, sentHeaders: sent });
}

/** Disposes of something when the sandbox is closed, before its container ends. */
export function disposeFirst(sandbox: Sandbox, resource: AsyncDisposable): void {
  closeFirst(openedSandboxOf(sandbox), resource);
}

/** Called once, when the sandbox has ended by itself. */
export function onEndOf(sandbox: Sandbox, listener: () => void): void {
  openedSandboxOf(sandbox).link.onGone = listener;
}

/** Connects to a server in a sandbox. Errors: those of `connectPort`. */
export async function connectToPort(sandbox: Sandbox, port: number, signal: AbortSignal): Promise<Duplex> {
  const { connectPort } = await import("./network/forward-port.js");
  return await connectPort(openedSandboxOf(sandbox).link, port, signal);
}

/** Brings the changes of a sandbox that was started from kept ones to the host, and notes with these what was applied. */
export async function applyKeptChanges(
  sandbox: Sandbox,
  id: string,
  options: ApplyOptions,
): Promise<ApplyResult> {
  return await applyKept(openedSandboxOf(sandbox), id, options);
}
