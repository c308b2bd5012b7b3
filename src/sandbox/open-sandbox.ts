import { randomUUID } from "node:crypto";
import { availableParallelism, hostname } from "node:os";
import { BrigError, isBrigError } from "../errors.js";
import { type HostProcesses, type Owner, ownerOf, readHostProcesses } from "../lib/owner.js";
import { step } from "../lib/steps.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import { Gate } from "../lib/time/gate.js";
import { pause } from "../lib/time/pause.js";
import { readVersion } from "../version.js";
import type { SessionBranch } from "./branch/session-branch.js";
import type { OnCopied } from "./changes/copied-changes.js";
import type { LinkJournal } from "./channel/link-journal.js";
import type { RunnerLink } from "./channel/runner-link.js";
import { SandboxContainer } from "./container.js";
import type { Engine, ImageSummary } from "./docker/engine-types.js";
import type { Resolve } from "./egress/dial.js";
import type { InspectionOptions } from "./egress/inspection.js";
import type { UpstreamProxy } from "./egress/read-upstream.js";
import { prepareToolbox, requireToolbox } from "./images/require-toolbox.js";
import { type Toolbox, toolboxIn } from "./images/toolbox-volume.js";
import { sessionLabels } from "./labels.js";
import {
  type FoundListeners,
  findListeners,
  type KnownListeners,
  NotCovered,
  withCovered,
} from "./listeners/cover-listeners.js";
import type { EarlierEgress, SandboxEgress } from "./network/egress/sandbox-egress.js";
import type { OverlayTree } from "./overlay/overlay-tree.js";
import { explainMountFailure, noOverlay } from "./overlay/plan-overlay.js";
import type { WorkspaceTree } from "./overlay/workspace-tree.js";
import { applyImageSettings } from "./plan/image-settings.js";
import { requireImage } from "./plan/missing-image.js";
import type { SandboxPlan } from "./plan/plan.js";
import { planSandbox } from "./plan/plan-sandbox.js";
import type { Proof } from "./proof/proof.js";
import { cannotLoadRunner, onRightKernel, WrongKernel } from "./proof/right-kernel.js";
import type { SandboxOptions, StartOption } from "./sandbox-options.js";
import { reclaimPlaceholders, type SandboxAbout } from "./sandbox-records.js";
import { aboutSandbox, hostDirectories } from "./settings/resolve-settings.js";
import type { SandboxSettings } from "./settings/sandbox-settings.js";
import { hasAllowList } from "./setup/has-allow-list.js";
import { tellNotices, type Warn, warner } from "./warnings.js";

/** A started, proved and connected sandbox, before anybody uses it. */
export interface OpenedSandbox {
  /** Disposed of when the sandbox is closed, before its container ends. Default: nothing. */
  closedFirst?: AsyncDisposable[];
  plan: SandboxPlan;
  engine: Engine;
  containerId: string;
  link: RunnerLink;
  proof: Proof;
  /** Null without an allow-list. */
  egress: SandboxEgress | null;
  /** The tree of a copy-on-write workspace; null for any other workspace. */
  tree: WorkspaceTree | null;
  /** Brings the commits to the host; null if commands may not write to the repository. */
  branch: SessionBranch | null;
  /** The settings and options that it was opened with. A fork is opened with the same ones. */
  settings: SandboxSettings;
  options: StartOptions;
  /** Where what was sent and received is noted; null if nobody can go on with the sandbox. */
  journal: LinkJournal | null;
  /** Commands have run in it before this process had it. Default: false. */
  hasRun?: boolean;
  /** The container keeps running after `release`. */
  isKept: boolean;
  /**
   * Removes the container and the placeholders, or leaves both with `keep`. `isEnding` says that the runner
   * was asked to end. Error: `engine.failed` if the container may still be there; then this can be called
   * again.
   */
  release(how: { isEnding: boolean }): Promise<void>;
  /** Asks the engine how the container is; see `SandboxContainer.diagnose`. */
  diagnose: SandboxContainer["diagnose"];
  /**
   * Starts the container again after everything in it has ended, and proves the policy again. Only for a
   * sandbox that outlives its processes. The earlier sandbox must not be used any more.
   */
  restart(): Promise<OpenedSandbox>;
  warn: Warn;
}

/** Has a sandbox dispose of something when it is closed, before its container ends. */
export function closeFirst(sandbox: Pick<OpenedSandbox, "closedFirst">, resource: AsyncDisposable): void {
  sandbox.closedFirst = [...(sandbox.closedFirst ?? []), resource];
}

/** Options for the start of a sandbox, besides its settings. */
export interface StartOptions extends Pick<SandboxOptions, StartOption> {
  /** The engine, which may still be connecting. */
  engine: Engine | Promise<Engine>;
  /** A volume to mount at /.brig instead of this version's toolbox. */
  toolboxVolume?: string | undefined;
  /** Looks up the names of an allow-list. Default: as the host's own programs do it. */
  resolve?: Resolve | undefined;
  /** The engine's description of the image, if it was asked already. */
  inspectedImage?: ImageSummary | undefined;
  /** Whether `close` keeps what was changed in a copy-on-write workspace, as its receipt says. Default: false. */
  keepsChanges?: boolean | undefined;
  /** Called with how much has been copied where the workspace begins with the state of a snapshot, and while its changes are kept at the end. */
  onCopied?: OnCopied | undefined;
  /** A directory of brig's own for what another process needs to go on with the sandbox. Default: nobody can. */
  lasting?: string | undefined;
  /** The key with which secrets are sealed there. Default: nobody can go on with a sandbox that has any. */
  sealKey?: Buffer | undefined;
}

/** Wrong settings are reported first, even when the engine fails or never answers. */
export async function openSandbox(
  settings: SandboxSettings | Promise<SandboxSettings>,
  options: StartOptions,
): Promise<OpenedSandbox> {
  const answering = answeringEngine(options.engine);
  answering.catch(() => undefined);
  const { signal } = options;
  // Whatever does not need the engine is read while it answers.
  if (options.toolboxVolume === undefined) prepareToolbox();
  const [resolved, processes] = await Promise.all([settings, readHostProcesses(hostname())]);
  const engine = await beforeAbort(answering, signal);
  step("the policy is read, and the engine has answered");
  return await queueStart(engine.endpoint, options, () =>
    startOn(engine, { settings: resolved, options, processes }),
  );
}

async function answeringEngine(connecting: Engine | Promise<Engine>): Promise<Engine> {
  const engine = await connecting;
  // Asked early, since it is the slowest answer that a start waits for. A failure is reported where the
  // answer is needed.
  void engine.info().catch(() => undefined);
  return engine;
}

interface Start {
  settings: SandboxSettings;
  options: StartOptions;
}

async function startOn(
  engine: Engine,
  { settings, options, processes }: Start & { processes: HostProcesses },
): Promise<OpenedSandbox> {
  const [{ brigHome }, { toolboxVolume }] = [settings.environment, options];
  const upstream = await upstreamOf(settings, options);
  options.onProgress?.("looking at the image and the workspace");
  const looking = Promise.all([
    options.inspectedImage ?? requireImage(engine, settings.image),
    toolboxVolume === undefined ? requireToolbox(engine, brigHome) : toolboxIn(engine, toolboxVolume),
  ]);
  looking.catch(() => undefined);
  // Before the plan is made, since it takes over the placeholders that a killed session left in the same
  // workspace.
  const reclaiming = reclaimPlaceholders(engine, { brigHome, processes }).catch(warner(options));
  await beforeAbort(reclaiming, options.signal);
  const owner = await ownerOf(process.pid, processes);
  const lasts = options.lasting !== undefined;
  const preparing = Promise.all([looking, makePlan(settings, { engine, owner, lasts })]);
  const [[image, toolbox], { plan: planned, searching }] = await beforeAbort(preparing, options.signal);
  tellNotices(planned, { told: settings.toldNotices, warn: warner(options) });
  step("image, toolbox and workspace are looked at");
  const plan = applyImageSettings(planned, image);
  const recordFor = { brigHome, owner, about: aboutSandbox(settings, plan) };
  const start = { engine, searching, settings, options, upstream, toolbox, imageId: image.id, recordFor };
  return await withTree(plan, start, (tree) =>
    onRightKernel(plan.kernel, (kernel) =>
      withCovered(searching, (covered) => startProved({ ...plan, kernel, covered }, { ...start, tree })),
    ),
  );
}

/** Opens the sandbox on the session's tree, if it has one, and releases the tree with the sandbox. */
async function withTree(
  plan: SandboxPlan,
  { settings, options, ...start }: Omit<ProvedStart, "tree">,
  open: (tree: OverlayTree | null) => Promise<OpenedSandbox>,
): Promise<OpenedSandbox> {
  const shared = settings.overlay;
  if (shared === undefined || plan.overlay === null) return await open(null);
  const warn = warner(options);
  shared.hold();
  try {
    const tree = await shared.open({ ...start, plan, warn });
    const opened = await open(tree);
    const { undoLeftApplies } = await import("./changes/apply-records.js");
    await undoLeftApplies(tree, settings.environment.brigHome).catch(warn);
    const release: OpenedSandbox["release"] = async (how) => {
      await opened.release(how);
      await shared.release();
    };
    return { ...opened, release };
  } catch (error) {
    await shared.release().catch(warn);
    throw explainMountFailure(error, plan.overlay);
  }
}

interface ProvedStart extends Start {
  engine: Engine;
  upstream: UpstreamProxy | null;
  toolbox: Toolbox;
  imageId: string;
  searching: Promise<FoundListeners>;
  recordFor: { brigHome: string; owner: Owner; about: SandboxAbout };
  tree: OverlayTree | null;
}

async function startProved(
  planned: SandboxPlan,
  { engine, settings, options, upstream, toolbox, imageId, searching, recordFor, tree }: ProvedStart,
): Promise<OpenedSandbox> {
  const { inspection } = settings;
  const plan = tree === null ? planned : withoutWitnesses(planned);
  if (tree !== null && plan.kernel === "gvisor") throw noOverlay("they are not supported with gVisor");
  const warn = warner(options);
  const journal = await openJournal(settings, { options, warn });
  const container = new SandboxContainer(engine, {
    ...{ plan, toolbox, imageId, keep: settings.keep, warn },
    recordFor: { ...recordFor, lasts: journal === null ? undefined : true },
  });
  try {
    // The modules that are needed from here on are loaded while the engine starts the container.
    options.onProgress?.("starting the container");
    const loadRest = () => import("./connect-and-prove.js");
    const note = async (start: Pick<Recorded, "listeners" | "tree">) => {
      if (journal === null) return;
      await recordLasting(container, { options, settings, ...start }).catch((error) => journal.giveUp(error));
    };
    await container.start({
      signal: options.signal,
      // Noted before anybody can go on with it, so that it can be ended if this process is killed meanwhile.
      whileStarting: async () => await Promise.all([loadRest(), note({ listeners: null, tree: null })]),
    });
    const { covered, listeners } = await beforeAbort(searching, options.signal);
    if (covered.length > plan.covered.length) throw new NotCovered();
    const connect = async (): Promise<OpenedSandbox> => {
      const { connectAndProve } = await loadRest();
      options.onProgress?.("checking the policy inside");
      const { signal, onLateOutput } = options;
      const proving = connectAndProve(container, { signal, onLateOutput, inspection, listeners, journal });
      const { report, ...running } = await proving;
      await tree?.ready();
      tree?.requireSame(plan, report);
      step("the workspace's tree is ready");
      const opened = await openedOn(container, {
        ...{ plan, engine, settings, options, upstream, tree, warn, journal, ...running },
        restart: async () => {
          await container.startAgain();
          return await connect();
        },
      });
      await keepEgress(opened, inspection ?? null);
      await note({ listeners, tree });
      return opened;
    };
    return await connect();
  } catch (error) {
    await container.giveUp();
    throw cannotLoadRunner(error) ? new WrongKernel("gvisor", { cause: error }) : withoutGpus(error, plan);
  }
}

/** Docker says it when the container starts, and only in words; Podman has names for devices that nobody has described to it. */
function withoutGpus(error: unknown, { gpus }: SandboxPlan): unknown {
  if (gpus === undefined || !isBrigError(error, "engine.failed")) return error;
  if (!/could not select device driver|unresolvable CDI devices|nvidia/i.test(error.message)) return error;
  return new BrigError("the engine has no graphics processors to give to a container", {
    code: "usage.invalid",
    hint: "leave out --gpus, or install NVIDIA's container toolkit on the engine's machine and restart the engine",
    cause: error,
  });
}

interface Running {
  link: RunnerLink;
  proof: Proof;
  plan: SandboxPlan;
  engine: Engine;
  settings: SandboxSettings;
  options: StartOptions;
  upstream: UpstreamProxy | null;
  tree: OverlayTree | null;
  journal: LinkJournal | null;
  warn: Warn;
  restart: OpenedSandbox["restart"];
  /** Its allow-list as another process has opened it. Default: it is opened for the first time. */
  earlier?: EarlierEgress | undefined;
}

/** Puts the allow-list of a sandbox into force whose runner has answered, and gathers what belongs to it. */
export async function openedOn(container: SandboxContainer, running: Running): Promise<OpenedSandbox> {
  const { link, proof, plan, engine, settings, options, upstream, tree, journal, warn, restart } = running;
  const { openEgressOf } = await import("./connect-and-prove.js");
  const watched = { ...options, onNetwork: container.noteNetwork };
  const enforced = { inspection: settings.inspection, earlier: running.earlier };
  const egress = await openEgressOf(link, plan, { ...watched, upstream, ...enforced });
  return {
    ...{
      plan,
      engine,
      containerId: container.id,
      link,
      proof,
      egress,
      settings,
      options,
      journal,
      warn,
      restart,
    },
    async release(how) {
      // If the container is gone, so are its listeners; it has to be removed all the same.
      await egress?.close().catch(warn);
      await container.release(how);
    },
    diagnose: (symptoms) => container.diagnose(symptoms),
    tree: plan.overlay?.path === plan.workspace ? tree : null,
    branch: writesRepository(settings) ? settings.branch : null,
    isKept: settings.keep,
  };
}

/** Null if nobody asked for it, or if only this process may know the secrets of the sandbox. */
async function openJournal(
  { inspection }: SandboxSettings,
  { options: { lasting, sealKey }, warn }: { options: StartOptions; warn: Warn },
): Promise<LinkJournal | null> {
  if (lasting === undefined) return null;
  if (inspection) {
    const { canKeepEgress } = await import("./lasting/kept-egress.js");
    if (!canKeepEgress(inspection, sealKey)) return null;
  }
  const { newJournal } = await import("./lasting/lasting-record.js");
  return newJournal(lasting, { warn });
}

/** Notes what is enforced outside of a sandbox, where another process may go on with it. What cannot be noted ends with this process. */
export async function keepEgress(opened: OpenedSandbox, inspection: InspectionOptions | null): Promise<void> {
  const {
    egress,
    journal,
    options: { lasting, sealKey },
  } = opened;
  if (inspection === null || egress === null || journal === null || lasting === undefined) return;
  const { writeKeptEgress } = await import("./lasting/kept-egress.js");
  const earlier = await egress.kept();
  try {
    writeKeptEgress(lasting, { inspection, earlier }, sealKey);
  } catch (error) {
    journal.giveUp(error);
  }
}

interface Recorded extends Pick<ProvedStart, "options" | "settings" | "tree"> {
  /** Null before they are known. */
  listeners: KnownListeners | null;
}

async function recordLasting(
  { id: containerId, plan, imageId, engine, token, placeholders }: SandboxContainer,
  { options: { lasting }, settings: { inspection, branch }, listeners, tree }: Recorded,
): Promise<void> {
  if (lasting === undefined) return;
  const { writeResumeRecord } = await import("./lasting/lasting-record.js");
  const knownListeners = listeners === null ? null : [...listeners.known];
  const { endpoint } = engine;
  writeResumeRecord(lasting, {
    ...{ format: 2, plan, imageId, containerId, endpoint, token: token.toString("hex"), placeholders },
    tree: tree && { ...tree.top, changedNs: String(tree.top.changedNs) },
    knownListeners,
    ...{ hasInspection: (inspection ?? null) !== null, branch: branch?.name ?? null },
  });
}

/**
 * The keeper has proved of what the tree is made, and this sandbox has to have the same tree. The files may be
 * others by now: those of a fork, or what commands in another sandbox have made of them.
 */
function withoutWitnesses(plan: SandboxPlan): SandboxPlan {
  return { ...plan, overlay: plan.overlay && { ...plan.overlay, witnesses: [] } };
}

/** Whether commands may write to the repository. If the policy makes the workspace read-only, its repository is so as well. */
function writesRepository(
  settings: SandboxSettings,
): settings is SandboxSettings & { workspace: string; branch: SessionBranch } {
  const { branch, workspace, policy } = settings;
  return branch !== undefined && workspace !== null && policy.policy.workspace.access === "rw";
}

async function makePlan(
  settings: SandboxSettings,
  { engine, owner, lasts }: { engine: Engine; owner: Owner; lasts: boolean },
): Promise<{ plan: SandboxPlan; searching: Promise<FoundListeners> }> {
  const sessionId = randomUUID();
  const host = hostDirectories(settings.environment);
  const branching = writesRepository(settings) && settings.branch.prepare(settings.workspace, sessionId);
  const plan = await planSandbox({
    ...settings,
    preparedBranch: (await branching) || undefined,
    hostUser: { uid: process.getuid?.() ?? 1000, gid: process.getgid?.() ?? 1000 },
    sessionId,
    labels: sessionLabels({
      sessionId,
      version: readVersion(),
      owner,
      createdAt: new Date(),
      leaseSeconds: settings.keep ? 0 : settings.leaseSeconds,
    }),
    engine: await engine.info(),
    endpoint: engine.endpoint,
    ...{ host, lasts },
  });
  const searching = findListeners(plan, host);
  // A failure is reported where the result is needed.
  searching.catch(() => undefined);
  return { plan, searching };
}

/** More at once would only make the first start as slow as the last: the engine is at its limit. */
const AT_ONCE_FOR_EACH_CORE = 2;

/** The time after which the next sandbox may close too, so that an engine that does not answer blocks nobody. */
const LONGEST_TURN_MS = 1_000;

/** The gates by direction and engine address, since a program may connect to an engine several times. */
const gates = new Map<string, Gate>();

interface StartLimit {
  /** The number of sandboxes that this process may start at a time on the engine. Default: twice the cores. */
  maxStartsAtOnce?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Starts a sandbox once fewer than the limit are being started on this engine. */
async function queueStart<T>(
  endpoint: string,
  { maxStartsAtOnce = AT_ONCE_FOR_EACH_CORE * availableParallelism(), signal }: StartLimit,
  start: () => Promise<T>,
): Promise<T> {
  return await pass(`start ${endpoint}`, start, { width: Math.max(1, maxStartsAtOnce), signal });
}

/**
 * Closes a sandbox once few others are being closed on this engine. Many containers that end at once would
 * keep this process off the processors for a quarter of a second, and none would be gone sooner.
 */
export async function queueClose<T>(endpoint: string, close: () => Promise<T>): Promise<T> {
  const turn = async () => {
    const closing = close();
    const isOver = new AbortController();
    const longest = pause(LONGEST_TURN_MS, isOver.signal).catch(() => undefined);
    await Promise.race([closing.catch(() => undefined), longest]);
    isOver.abort();
    // An object, because returning the promise itself would await it here.
    return { closing };
  };
  const width = AT_ONCE_FOR_EACH_CORE * availableParallelism();
  return await (await pass(`close ${endpoint}`, turn, { width })).closing;
}

async function pass<T>(
  name: string,
  run: () => Promise<T>,
  limit: { width: number; signal?: AbortSignal | undefined },
): Promise<T> {
  const gate = gates.get(name) ?? new Gate();
  gates.set(name, gate);
  try {
    return await gate.pass(run, limit);
  } finally {
    if (gate.isIdle) gates.delete(name);
  }
}

/** The proxy between this machine and the internet; null if none is set, or no allow-list needs it. Error: `usage.invalid`. */
export async function upstreamOf(
  { environment, policy, setup }: Pick<SandboxSettings, "environment" | "policy" | "setup">,
  { egressProxy = environment.egressProxy }: Pick<SandboxOptions, "egressProxy">,
): Promise<UpstreamProxy | null> {
  if (egressProxy === undefined || !hasAllowList(policy.policy.network, setup)) return null;
  const { readUpstream } = await import("./egress/read-upstream.js");
  return readUpstream(egressProxy, environment.variables);
}
