import { hostname } from "node:os";
import { BrigError, isBrigError } from "../../errors.js";
import { ownerOf, readHostProcesses } from "../../lib/owner.js";
import {
  type JournalNote,
  type LostOutput,
  type RecoveredJournal,
  recoverJournal,
} from "../channel/link-journal.js";
import { FrameType } from "../channel/protocol.js";
import { resumeAndProve } from "../connect-and-prove.js";
import { SandboxContainer } from "../container.js";
import type { Engine } from "../docker/engine-types.js";
import { requireToolbox } from "../images/require-toolbox.js";
import { LABELS } from "../labels.js";
import { knownListenersOf } from "../listeners/cover-listeners.js";
import type { EarlierEgress } from "../network/egress/sandbox-egress.js";
import { type OpenedSandbox, openedOn, type StartOptions, upstreamOf } from "../open-sandbox.js";
import type { OverlayTree } from "../overlay/overlay-tree.js";
import { SharedTree, type TreeOpening } from "../overlay/shared-tree.js";
import { removeTreeVolumes } from "../overlay/tree-volumes.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { CommandContext } from "../process/command.js";
import { stuckTree } from "../process/ended-container.js";
import { RunningProcess } from "../process/process.js";
import { recordedNow, removeRecord, type SandboxAbout } from "../sandbox-records.js";
import type { SandboxProcess, SpawnOptions } from "../sandbox-types.js";
import { aboutSandbox, hostDirectories } from "../settings/resolve-settings.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";
import { type Warn, warner } from "../warnings.js";
import { newJournal, type ResumeRecord, readResumeRecord } from "./lasting-record.js";

/** A command that was started with a name, by which another process finds it again. */
interface NotedCommand extends JournalNote {
  argv: readonly string[];
  options: Pick<SpawnOptions, "stdin" | "pty" | "mergeOutput" | "timeoutMs">;
  /** What its starter wants to know again. */
  about: unknown;
}

/** A command that goes on, or has ended meanwhile. */
export interface ResumedCommand extends NotedCommand {
  name: string;
  /** Its streams begin with the output that is still known. */
  process: SandboxProcess;
  /** How much of its output came before, and is not known any more. */
  lost: LostOutput;
  /** How much input it has been sent; null if it has ended. */
  inputBytes: number | null;
}

const PREFIX = "command ";

/** Starts a command and notes it, so that another process can go on with it. Errors: those of `sandbox.spawn`. */
export function spawnNoted(
  { journal }: OpenedSandbox,
  context: CommandContext,
  {
    name,
    argv,
    options,
    about,
  }: { name: string; argv: readonly string[]; options: SpawnOptions; about: unknown },
): SandboxProcess {
  const { stdin, pty, mergeOutput, timeoutMs } = options;
  const note = (channel: number) => {
    const noted: NotedCommand = { argv, channel, about, options: { stdin, pty, mergeOutput, timeoutMs } };
    journal?.note(PREFIX + name, noted);
  };
  return new RunningProcess(context, argv, { ...options, onChannel: note });
}

/** Forgets a command that has ended. */
export function forgetNoted({ journal }: OpenedSandbox, name: string): void {
  journal?.note(PREFIX + name, null);
}

export interface ResumeOptions {
  /** Those that it was started with, but for rules for requests and secrets, which are in its directory. */
  settings: SandboxSettings;
  options: StartOptions;
  /** The hosts that it may reach, if these are no longer those of the settings. */
  hosts?: readonly string[] | undefined;
}

/**
 * Goes on with a sandbox whose process was killed, from the directory that it was started with as `lasting`. The policy is proved again.
 * Errors: `sandbox.gone` if it has ended, or its directory does not say how to go on; those of a start.
 */
export async function resumeSandbox(
  directory: string,
  { settings: given, options, hosts }: ResumeOptions,
): Promise<{ opened: OpenedSandbox; commands: ResumedCommand[] }> {
  const record = readResumeRecord(directory);
  const recovered = record === null ? null : recoverJournal(directory);
  if (record === null || recovered === null) throw gone("its files do not say how to go on");
  const engine = await options.engine;
  const state = await engine.inspectContainer(record.containerId);
  const warn = warner(options);
  const { brigHome } = given.environment;
  if (!state?.running) {
    await endLeft(directory, { engine, brigHome, warn }).catch(warn);
    throw gone("its container has ended");
  }
  // Its runner would not answer.
  if (state.paused) await engine.unpauseContainer(record.containerId);
  const settings = withBranchOf(record, withTreeOf(record, given));
  const { container, ...adopted } = await adoptContainer(record, {
    ...{ engine, warn, about: aboutSandbox(settings, record.plan) },
    ...{ brigHome, keep: settings.keep },
  });
  try {
    return await goOnIn(container, {
      ...{ record, recovered, settings, options, warn, directory, hosts },
      ...adopted,
    });
  } catch (error) {
    // What cannot be gone on with must not run on. An engine that failed may have it for another process.
    if (!isEngineFailure(error)) await endLeft(directory, { engine, brigHome, warn }).catch(warn);
    throw error;
  }
}

/**
 * Ends a sandbox of a process that is gone, from the same directory, with which nobody is to go on. Does nothing if the directory does
 * not say which it is. Error: `engine.failed`.
 */
export async function endLeft(directory: string, { engine, brigHome, warn }: LeftOptions): Promise<void> {
  const record = readResumeRecord(directory);
  if (record === null) return;
  const { image, overlay, policyName: mode, workspace } = record.plan;
  const about = { image, mode, network: "none", workspace, createdAt: new Date().toISOString() };
  const { container } = await adoptContainer(record, { engine, brigHome, about, keep: false, warn });
  await container.discard();
  if (overlay === null) return;
  await removeContainersOf(overlay.id, engine);
  await removeTreeVolumes(engine, overlay.id);
  for (const left of recordedNow(brigHome)) if (left.sessionId === overlay.id) removeRecord(brigHome, left);
}

export interface LeftOptions {
  engine: Engine;
  brigHome: string;
  warn: Warn;
}

interface Adoption extends LeftOptions {
  about: SandboxAbout;
  keep: boolean;
}

async function adoptContainer(record: ResumeRecord, { engine, brigHome, about, keep, warn }: Adoption) {
  const { plan, imageId } = record;
  const owner = await ownerOf(process.pid, await readHostProcesses(hostname()));
  const recordFor = { brigHome, owner, about, lasts: true };
  const toolbox = await requireToolbox(engine, brigHome);
  const container = SandboxContainer.resume(
    engine,
    { plan, toolbox, imageId, keep, warn, recordFor },
    record,
  );
  return { container, recordFor, toolbox };
}

interface Resumption extends Omit<TreeOpening, "engine" | "plan" | "imageId"> {
  directory: string;
  record: ResumeRecord;
  recovered: RecoveredJournal;
  settings: SandboxSettings;
  options: StartOptions;
  hosts: readonly string[] | undefined;
}

async function goOnIn(
  container: SandboxContainer,
  { record, recovered, settings: given, options, warn, recordFor, toolbox, directory, hosts }: Resumption,
): Promise<{ opened: OpenedSandbox; commands: ResumedCommand[] }> {
  const { engine } = container;
  const { settings, earlier } = await withEgressOf(record, given, { directory, sealKey: options.sealKey });
  const { inspection } = settings;
  const plan = withHosts(container.plan, hosts);
  const journal = newJournal(directory, { warn, recovered });
  const listeners = listenersOf(record, settings);
  let commands: ResumedCommand[] = [];
  const running = await resumeAndProve(
    container,
    { ...options, journal, listeners, inspection },
    {
      recovered,
      adopt(link) {
        const onStuck = () => link.close(stuckTree());
        const mask = inspection?.mask;
        const context = { link, cwd: plan.workingDirectory, env: {}, mask, onStuck };
        commands = goOn(context, recovered);
      },
    },
  );
  let tree: OverlayTree | null = null;
  let opened: OpenedSandbox;
  try {
    tree = await treeOf(record, settings, { engine, toolbox, warn, recordFor });
    opened = await openedOn(container, {
      ...{ plan, engine, settings, options, tree, warn, journal, earlier, ...running },
      upstream: await upstreamOf(settings, options),
      restart: async () => {
        throw gone("it cannot be started again");
      },
    });
  } catch (error) {
    running.link.close(gone("its start failed"));
    if (tree !== null) await settings.overlay?.release().catch(warn);
    throw error;
  }
  const release: OpenedSandbox["release"] = async (how) => {
    await opened.release(how);
    if (tree !== null) await settings.overlay?.release();
  };
  return { opened: { ...opened, release, hasRun: true }, commands };
}

/** A list that has become shorter must not be in force again for even a moment. */
function withHosts(plan: SandboxPlan, hosts: readonly string[] | undefined): SandboxPlan {
  return plan.egress === null || hosts === undefined ? plan : { ...plan, egress: { hosts } };
}

/** Settings that were read again would have a new tree. */
function withTreeOf({ plan, tree }: ResumeRecord, settings: SandboxSettings): SandboxSettings {
  if (tree === null || plan.overlay === null) return settings;
  const leaseSeconds = settings.keep ? 0 : settings.leaseSeconds;
  const top = { ...tree, changedNs: BigInt(tree.changedNs) };
  return { ...settings, overlay: new SharedTree({ leaseSeconds, earlier: { id: plan.overlay.id, top } }) };
}

function withBranchOf({ plan, branch: name }: ResumeRecord, settings: SandboxSettings): SandboxSettings {
  const { branch } = settings;
  if (branch === undefined || !name || plan.workspace === null) return settings;
  return { ...settings, branch: branch.resumed({ workspace: plan.workspace, name }) };
}

/** Error: `sandbox.gone` if its secrets went with the process that had it. */
async function withEgressOf(
  { hasInspection = false }: ResumeRecord,
  settings: SandboxSettings,
  { directory, sealKey }: { directory: string; sealKey: Buffer | undefined },
): Promise<{ settings: SandboxSettings; earlier: EarlierEgress | undefined }> {
  if (!hasInspection) return { settings: { ...settings, inspection: null }, earlier: undefined };
  const { readKeptEgress } = await import("./kept-egress.js");
  const kept = readKeptEgress(directory, { sealKey, environment: settings.environment });
  if (kept === null) throw gone("its secrets were known only to the process that has ended");
  return { settings: { ...settings, inspection: kept.inspection }, earlier: kept.earlier };
}

async function treeOf(
  { plan, imageId }: ResumeRecord,
  { overlay: shared }: SandboxSettings,
  { engine, toolbox, warn, recordFor }: Omit<TreeOpening, "plan" | "imageId">,
): Promise<OverlayTree | null> {
  if (shared === undefined || plan.overlay === null) return null;
  await removeContainersOf(shared.id, engine);
  shared.hold();
  try {
    const tree = await shared.open({ engine, plan, toolbox, imageId, warn, recordFor });
    await tree.ready();
    const { undoLeftApplies, undoLeftRestores } = await import("../changes/apply-records.js");
    await undoLeftRestores(tree, recordFor.brigHome);
    await undoLeftApplies(tree, recordFor.brigHome).catch(warn);
    return tree;
  } catch (error) {
    await shared.release().catch(warn);
    throw error;
  }
}

/** Before anything more arrives from the runner. */
function goOn(context: CommandContext, { notes, historyOf }: RecoveredJournal): ResumedCommand[] {
  return [...notes].flatMap(([key, value]) => {
    if (!key.startsWith(PREFIX)) return [];
    const noted = value as NotedCommand;
    const { argv, options, channel } = noted;
    const history = historyOf(channel);
    // The request was noted, and not sent any more.
    if (history.totals === null && !history.frames.some(({ type }) => type === FrameType.exit)) return [];
    const resumed = new RunningProcess(context, argv, options, { channel, history });
    const inputBytes = history.totals?.inputBytes ?? null;
    return [{ ...noted, name: key.slice(PREFIX.length), process: resumed, lost: history.lost, inputBytes }];
  });
}

/** Removes those in which the process that is gone worked on the tree: they would keep its volumes. */
async function removeContainersOf(tree: string, engine: Engine): Promise<void> {
  const left = await engine.listContainers([`${LABELS.session}=${tree}`]);
  await Promise.all(left.map(({ id }) => engine.removeContainer(id)));
}

function isEngineFailure(error: unknown): boolean {
  return isBrigError(error) && error.code.startsWith("engine.");
}

function listenersOf({ plan, knownListeners }: ResumeRecord, { environment }: SandboxSettings) {
  return knownListeners && knownListenersOf(plan, knownListeners, hostDirectories(environment));
}

function gone(why: string): BrigError {
  return new BrigError(`the sandbox cannot be gone on with: ${why}`, {
    code: "sandbox.gone",
    reason: "closed",
    hint: "start another one with brig up",
  });
}
