import { hostname } from "node:os";
import { BrigError, isBrigError } from "../../errors.js";
import { ownerOf, readHostProcesses } from "../../lib/owner.js";
import { type JournalNote, type RecoveredJournal, recoverJournal } from "../channel/link-journal.js";
import { FrameType } from "../channel/protocol.js";
import { resumeAndProve } from "../connect-and-prove.js";
import { SandboxContainer } from "../container.js";
import type { Engine } from "../docker/engine-types.js";
import { requireToolbox } from "../images/require-toolbox.js";
import { LABELS } from "../labels.js";
import { knownListenersOf } from "../listeners/cover-listeners.js";
import { type OpenedSandbox, openedOn, type StartOptions, upstreamOf } from "../open-sandbox.js";
import type { OverlayTree } from "../overlay/overlay-tree.js";
import { SharedTree, type TreeOpening } from "../overlay/shared-tree.js";
import type { CommandContext } from "../process/command.js";
import { stuckTree } from "../process/ended-container.js";
import { RunningProcess } from "../process/process.js";
import type { SandboxProcess, SpawnOptions } from "../sandbox-types.js";
import { aboutSandbox, hostDirectories } from "../settings/resolve-settings.js";
import type { SandboxSettings } from "../settings/sandbox-settings.js";
import { warner } from "../warnings.js";
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
  lostBytes: number;
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

/**
 * Goes on with a sandbox whose process was killed, from the directory that it was started with as `lasting`. The policy is proved again.
 * The settings have to be those that it was started with. Errors: `sandbox.gone` if it has ended, or its directory does not say how
 * to go on; those of a start.
 */
export async function resumeSandbox(
  directory: string,
  { settings: given, options }: { settings: SandboxSettings; options: StartOptions },
): Promise<{ opened: OpenedSandbox; commands: ResumedCommand[] }> {
  const record = readResumeRecord(directory);
  const recovered = record === null ? null : recoverJournal(directory);
  if (record === null || recovered === null) throw gone("its files do not say how to go on");
  const engine = await options.engine;
  const { plan, imageId, containerId: id } = record;
  const state = await engine.inspectContainer(id);
  if (!state?.running) throw gone("its container has ended");
  const warn = warner(options);
  const settings = withTreeOf(record, given);
  const owner = await ownerOf(process.pid, await readHostProcesses(hostname()));
  const { brigHome } = settings.environment;
  const recordFor = { brigHome, owner, about: aboutSandbox(settings, plan), lasts: true };
  const toolbox = await requireToolbox(engine, brigHome);
  const kept = { plan, toolbox, imageId, keep: settings.keep, warn, recordFor };
  const container = SandboxContainer.resume(engine, kept, record);
  try {
    return await goOnIn(container, {
      record,
      recovered,
      settings,
      options,
      warn,
      recordFor,
      toolbox,
      directory,
    });
  } catch (error) {
    // What cannot be gone on with must not run on. An engine that failed may have it for another process.
    if (!isEngineFailure(error)) await container.giveUp();
    throw error;
  }
}

interface Resumption extends Omit<TreeOpening, "engine" | "plan" | "imageId"> {
  directory: string;
  record: ResumeRecord;
  recovered: RecoveredJournal;
  settings: SandboxSettings;
  options: StartOptions;
}

async function goOnIn(
  container: SandboxContainer,
  { record, recovered, settings, options, warn, recordFor, toolbox, directory }: Resumption,
): Promise<{ opened: OpenedSandbox; commands: ResumedCommand[] }> {
  const { engine, plan } = container;
  const journal = newJournal(directory, { warn, recovered });
  const listeners = listenersOf(record, settings);
  let commands: ResumedCommand[] = [];
  const running = await resumeAndProve(
    container,
    { ...options, journal, listeners },
    {
      recovered,
      adopt(link) {
        const onStuck = () => link.close(stuckTree());
        const context = { link, cwd: plan.workingDirectory, env: {}, onStuck };
        commands = goOn(context, recovered);
      },
    },
  );
  let tree: OverlayTree | null = null;
  let opened: OpenedSandbox;
  try {
    tree = await treeOf(record, settings, { engine, toolbox, warn, recordFor });
    opened = await openedOn(container, {
      ...{ plan, engine, settings, options, tree, warn, journal, ...running },
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

/** Settings that were read again would have a new tree. */
function withTreeOf({ plan, tree }: ResumeRecord, settings: SandboxSettings): SandboxSettings {
  if (tree === null || plan.overlay === null) return settings;
  const leaseSeconds = settings.keep ? 0 : settings.leaseSeconds;
  const top = { ...tree, changedNs: BigInt(tree.changedNs) };
  return { ...settings, overlay: new SharedTree({ leaseSeconds, earlier: { id: plan.overlay.id, top } }) };
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
    const { undoLeftApplies } = await import("../changes/apply-records.js");
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
    return [{ ...noted, name: key.slice(PREFIX.length), process: resumed, lostBytes: history.lostBytes }];
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
