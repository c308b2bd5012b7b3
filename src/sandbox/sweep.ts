import { isBrigError } from "../errors.js";
import { type HostProcesses, ownerState } from "../lib/owner.js";
import type { ContainerSummary, Engine, VolumeSummary } from "./docker/engine-types.js";
import { LABELS, readSessionLabels } from "./labels.js";
import { inTime } from "./removal.js";
import type { SandboxRecord } from "./sandbox-records.js";

export interface SweepOptions {
  now: Date;
  processes: HostProcesses;
  /** Report what would be removed without removing it. */
  dryRun?: boolean | undefined;
  /** The user's records. Containers without one are only reported: anybody can write labels. */
  records: readonly (Pick<SandboxRecord, "sessionId" | "containerId"> &
    Partial<Pick<SandboxRecord, "owner" | "lasts">>)[];
  /** Also remove containers without a record. */
  includeUnrecorded?: boolean | undefined;
  /** Also remove containers that were started with `--keep` and whose owner is gone. */
  includeKept?: boolean | undefined;
  /** The label of toolbox volumes, and its value on the current one. Without this, volumes are ignored. */
  toolbox?: { label: string; hash: string } | undefined;
  /** The label of cache volumes, which hold what MCP servers downloaded. Without this, they are ignored. */
  cacheLabel?: string | undefined;
  /** The label of shared volumes that this BRIG_HOME made. Others stay. Without it, all shared volumes count as its own. */
  home?: { label: string; id: string } | undefined;
  /** The labels of volumes that belong to one session. Without this, they are ignored. */
  sessionVolumeLabels?: readonly string[] | undefined;
}

export interface SweepReport {
  containers: SweptObject[];
  volumes: SweptObject[];
}

export interface SweptObject {
  /** Container id or volume name. */
  id: string;
  /** Null for an object that belongs to no session. */
  sessionId: string | null;
  verdict: SweepVerdict;
  /** False with `dryRun`, and when the engine refused. */
  removed: boolean;
  failure?: string | undefined;
}

export type SweepVerdict =
  | "owner-gone"
  | "never-started"
  | "stale-toolbox"
  | "unused-cache"
  | "owner-alive"
  | "kept-on-request"
  | "other-machine"
  | "unreadable-labels"
  | "unrecorded"
  | "in-use"
  | "cache-in-use";

type SweptEngine = Pick<Engine, "listContainers" | "removeContainer" | "listVolumes" | "removeVolume">;

export const REMOVABLE: readonly SweepVerdict[] = [
  "owner-gone",
  "never-started",
  "stale-toolbox",
  "unused-cache",
];
/** The longest time between a container's creation and its start. On a busy engine it took seconds. */
const START_GRACE_MS = 60_000;
/** Filling a toolbox volume takes seconds: a container that is older was left by a killed brig. */
const TOOLBOX_GRACE_MS = 600_000;

/** A newer cache is kept: the container that will use it may not have been created yet. */
const CACHE_GRACE_MS = 600_000;

/**
 * Removes what dead sessions of this machine left: containers whose owner is certainly gone or that were
 * never started, their volumes, unused toolbox volumes of other versions, and unused caches. Keeps everything from another machine, and
 * everything in doubt. Errors: the engine's.
 */
export async function sweep(asked: SweptEngine, options: SweepOptions): Promise<SweepReport> {
  const engine = answeringInTime(asked);
  const containers = await engine.listContainers([LABELS.session]);
  const swept = await Promise.all(
    containers.map(async (container) => await sweepContainer(engine, container, options)),
  );
  const toolboxes =
    options.toolbox === undefined ? null : await sweepToolboxes(engine, options.toolbox, options);
  const caches =
    options.cacheLabel === undefined ? [] : await sweepCaches(engine, options.cacheLabel, options);
  // Volumes come after the containers, because the engine removes no volume that a container uses.
  const ofSessions: SweptObject[] = [];
  for (const label of options.sessionVolumeLabels ?? [])
    ofSessions.push(...(await sweepSessionVolumes(engine, label, options)));
  return {
    containers: [...swept, ...(toolboxes?.containers ?? [])],
    volumes: [...(toolboxes?.volumes ?? []), ...caches, ...ofSessions],
  };
}

/** The same engine, with a limit for each of its answers: a sweep must not wait for ever. */
function answeringInTime(engine: SweptEngine): SweptEngine {
  return {
    listContainers: (labels) => inTime(() => engine.listContainers(labels)),
    removeContainer: (id) => inTime((signal) => engine.removeContainer(id, { signal })),
    listVolumes: (labels) => inTime(() => engine.listVolumes(labels)),
    removeVolume: (name) => inTime(() => engine.removeVolume(name)),
  };
}

async function judgeContainer(container: ContainerSummary, options: SweepOptions): Promise<SweepVerdict> {
  const verdict = await judgeLabels(container, options);
  return REMOVABLE.includes(verdict) && !isRecorded(container, options) ? "unrecorded" : verdict;
}

function hasOnlyImageFiles({ state, labels }: ContainerSummary): boolean {
  return state === "created" && labels[LABELS.imageFiles] !== undefined;
}

function isRecorded({ id, labels }: ContainerSummary, { records, includeUnrecorded }: SweepOptions): boolean {
  if (includeUnrecorded === true) return true;
  const sessionId = labels[LABELS.session];
  return records.some((one) => one.sessionId === sessionId && (one.containerId ?? id) === id);
}

async function judgeLabels(container: ContainerSummary, options: SweepOptions): Promise<SweepVerdict> {
  const session = readSessionLabels(container.labels);
  if (session === null) return "unreadable-labels";
  const record = options.records.find(({ sessionId }) => sessionId === session.sessionId);
  // Another process may have gone on with it since its labels were written.
  const state = await ownerState(record?.owner ?? session.owner, options.processes);
  if (state === "elsewhere") return "other-machine";
  const graceMs = Math.max(session.leaseSeconds * 1000, START_GRACE_MS);
  // Reading a large image may take long.
  if (hasOnlyImageFiles(container) && state === "alive") return "owner-alive";
  const isLate = options.now.getTime() - session.createdAt.getTime() > graceMs;
  // Nobody is left to start it, so not even --keep protects it.
  if (container.state === "created" && (isLate || state === "gone")) return "never-started";
  if (state === "alive") return "owner-alive";
  const isKept = session.leaseSeconds === 0 || record?.lasts === true;
  return isKept && options.includeKept !== true ? "kept-on-request" : "owner-gone";
}

async function sweepContainer(
  engine: SweptEngine,
  container: ContainerSummary,
  options: SweepOptions,
): Promise<SweptObject> {
  const { id, labels } = container;
  const found = { id, sessionId: labels[LABELS.session] ?? null };
  const verdict = await judgeContainer(container, options);
  return await removed({ ...found, verdict }, options, () => engine.removeContainer(id));
}

/** Removes an object if its verdict says so. */
async function removed(
  found: Pick<SweptObject, "id" | "sessionId" | "verdict">,
  { dryRun }: SweepOptions,
  remove: () => Promise<void>,
): Promise<SweptObject> {
  const shouldRemove = dryRun !== true && REMOVABLE.includes(found.verdict);
  return { ...found, ...(shouldRemove ? await outcomeOf(remove()) : { removed: false }) };
}

async function sweepToolboxes(
  engine: SweptEngine,
  { label, hash }: { label: string; hash: string },
  options: SweepOptions,
): Promise<{ containers: SweptObject[]; volumes: SweptObject[] }> {
  const fillers = (await engine.listContainers([label])).filter(
    ({ createdAt }) => options.now.getTime() - createdAt.getTime() > TOOLBOX_GRACE_MS,
  );
  const containers: SweptObject[] = [];
  const verdict = options.includeUnrecorded === true ? "never-started" : "unrecorded";
  for (const { id } of fillers)
    containers.push(
      await removed({ id, sessionId: null, verdict }, options, () => engine.removeContainer(id)),
    );
  const stale = (await engine.listVolumes([label])).filter(({ labels }) => labels[label] !== hash);
  const volumes = stale.filter((volume) => !isOfHome(volume, options)).map(ofAnother);
  const own = stale.filter((volume) => isOfHome(volume, options));
  for (const [, names] of groupByHash(own, label))
    volumes.push(...(await sweepVolumes(engine, names, options)));
  return { containers, volumes };
}

function isOfHome({ labels }: VolumeSummary, { home, includeUnrecorded }: SweepOptions): boolean {
  return home === undefined || includeUnrecorded === true || labels[home.label] === home.id;
}

function ofAnother({ name }: VolumeSummary): SweptObject {
  return { id: name, sessionId: null, verdict: "unrecorded", removed: false };
}

/** Groups volumes by toolbox. The volume with the files comes first: its name is a prefix of the others' names. */
function groupByHash(volumes: readonly VolumeSummary[], label: string): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { name, labels } of volumes.toSorted((a, b) => a.name.length - b.name.length))
    groups.set(labels[label] ?? "", [...(groups.get(labels[label] ?? "") ?? []), name]);
  return groups;
}

/** All or none: the engine refuses to remove the first while a container uses it. */
async function sweepVolumes(
  engine: SweptEngine,
  names: string[],
  options: SweepOptions,
): Promise<SweptObject[]> {
  const swept: SweptObject[] = [];
  for (const id of names) {
    const isUsed = swept.some(({ verdict }) => verdict === "in-use");
    const mayRemove = !isUsed && options.dryRun !== true;
    const { removed } = mayRemove ? await outcomeOf(engine.removeVolume(id)) : { removed: false };
    const verdict = removed || options.dryRun === true ? "stale-toolbox" : "in-use";
    swept.push({ id, sessionId: null, verdict, removed });
  }
  return swept;
}

/** The engine refuses to remove a volume that a container uses, even one that has ended. */
async function sweepCaches(
  engine: SweptEngine,
  label: string,
  options: SweepOptions,
): Promise<SweptObject[]> {
  const old = (await engine.listVolumes([label])).filter(
    ({ createdAt }) => createdAt !== null && options.now.getTime() - createdAt.getTime() > CACHE_GRACE_MS,
  );
  const swept = old.filter((volume) => !isOfHome(volume, options)).map(ofAnother);
  for (const { name: id } of old.filter((volume) => isOfHome(volume, options))) {
    const isDryRun = options.dryRun === true;
    const { removed } = isDryRun ? { removed: false } : await outcomeOf(engine.removeVolume(id));
    const verdict = removed || isDryRun ? "unused-cache" : "cache-in-use";
    swept.push({ id, sessionId: null, verdict, removed });
  }
  return swept;
}

async function sweepSessionVolumes(
  engine: SweptEngine,
  label: string,
  options: SweepOptions,
): Promise<SweptObject[]> {
  const volumes = await engine.listVolumes([label, LABELS.session]);
  const swept: SweptObject[] = [];
  // The name of the merged volume of a copy-on-write workspace sorts before the names of its layers.
  for (const volume of volumes.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const found = { id: volume.name, sessionId: volume.labels[LABELS.session] ?? null };
    const verdict = await judgeSessionVolume(volume, options);
    swept.push(await removed({ ...found, verdict }, options, () => engine.removeVolume(volume.name)));
  }
  return swept;
}

async function judgeSessionVolume(
  { name, labels }: VolumeSummary,
  options: SweepOptions,
): Promise<SweepVerdict> {
  const { records, includeUnrecorded, includeKept, processes } = options;
  const session = readSessionLabels(labels);
  if (session === null) return "unreadable-labels";
  const state = await ownerState(session.owner, processes);
  if (state === "elsewhere") return "other-machine";
  if (state === "alive") return "owner-alive";
  if (session.leaseSeconds === 0 && includeKept !== true) return "kept-on-request";
  const { sessionId } = session;
  const isOurs =
    name.startsWith(`brig-${sessionId}-`) && records.some((record) => record.sessionId === sessionId);
  return isOurs || includeUnrecorded === true ? "owner-gone" : "unrecorded";
}

/** Turns the engine's refusal into a value, so that the sweep goes on with the others. */
async function outcomeOf(removal: Promise<void>): Promise<Pick<SweptObject, "removed" | "failure">> {
  try {
    await removal;
    return { removed: true };
  } catch (error) {
    if (isBrigError(error, "engine.failed")) return { removed: false, failure: error.message };
    throw error;
  }
}
