import type { ContainerSummary, Engine, VolumeSummary } from "../docker/types.js";
import { isBrigError } from "../errors.js";
import { LABELS, readSessionLabels } from "./labels.js";
import { type HostProcesses, ownerState } from "./owner.js";
import { readPlaceholdersLabel, removeLeftPlaceholders } from "./placeholders.js";

export interface SweepOptions {
  now: Date;
  processes: HostProcesses;
  /** Report what would be removed, and remove nothing. */
  dryRun?: boolean | undefined;
  /** Also remove containers of dead owners that `--keep` was asked for. */
  includeKept?: boolean | undefined;
  /** The content hash of the toolbox in use; without it no volume is looked at. */
  toolboxHash?: string | undefined;
}

export interface SweepReport {
  containers: SweptObject[];
  volumes: SweptObject[];
  /** Empty directories that killed sessions had made on this machine. */
  placeholders: string[];
}

export interface SweptObject {
  /** Container id or volume name. */
  id: string;
  sessionId: string | null;
  verdict: SweepVerdict;
  /** False with `dryRun`, and when the engine refused. */
  removed: boolean;
}

export type SweepVerdict =
  | "owner-gone"
  | "never-started"
  | "stale-toolbox"
  | "owner-alive"
  | "kept-on-request"
  | "other-machine"
  | "unreadable-labels"
  | "in-use";

type SweptEngine = Pick<Engine, "listContainers" | "removeContainer" | "listVolumes" | "removeVolume">;

const REMOVABLE: readonly SweepVerdict[] = ["owner-gone", "never-started", "stale-toolbox"];
/** Between create and start of a container: on a busy engine this took seconds. */
const START_GRACE_MS = 60_000;
/** A volume so new may be one that another brig is about to use. */
const TOOLBOX_GRACE_MS = 3_600_000;

/**
 * Removes what dead sessions of this machine left: containers whose owner is certainly gone or that were never started,
 * and unused volumes of other toolboxes. What another machine made, or what cannot be told, stays.
 */
export async function sweep(engine: SweptEngine, options: SweepOptions): Promise<SweepReport> {
  const containers = await engine.listContainers([LABELS.session]);
  const swept = await Promise.all(containers.map((container) => sweepContainer(engine, container, options)));
  return {
    containers: swept,
    volumes: await sweepVolumes(engine, options),
    placeholders: await sweepPlaceholders(containers, swept),
  };
}

/** What a sweep would do with one container. */
export async function judgeContainer(
  container: ContainerSummary,
  options: SweepOptions,
): Promise<SweepVerdict> {
  const mark = readSessionLabels(container.labels);
  if (mark === null) return "unreadable-labels";
  const state = await ownerState(mark.owner, options.processes);
  if (state === "elsewhere") return "other-machine";
  if (isNeverStarted(container, mark.leaseSeconds, options.now)) return "never-started";
  if (state === "alive") return "owner-alive";
  return mark.leaseSeconds === 0 && options.includeKept !== true ? "kept-on-request" : "owner-gone";
}

function isNeverStarted({ state, createdAt }: ContainerSummary, leaseSeconds: number, now: Date): boolean {
  const graceMs = Math.max(leaseSeconds * 1000, START_GRACE_MS);
  return state === "created" && now.getTime() - createdAt.getTime() > graceMs;
}

async function sweepContainer(
  engine: SweptEngine,
  container: ContainerSummary,
  options: SweepOptions,
): Promise<SweptObject> {
  const verdict = await judgeContainer(container, options);
  const removed = isToBeRemoved(verdict, options) && (await succeeds(engine.removeContainer(container.id)));
  return { id: container.id, sessionId: container.labels[LABELS.session] ?? null, verdict, removed };
}

async function sweepVolumes(engine: SweptEngine, options: SweepOptions): Promise<SweptObject[]> {
  const { toolboxHash } = options;
  if (toolboxHash === undefined) return [];
  const volumes = await engine.listVolumes([LABELS.toolbox]);
  const stale = volumes.filter((volume) => isStale(volume, toolboxHash, options.now));
  return await Promise.all(
    stale.map(async ({ name }): Promise<SweptObject> => {
      if (options.dryRun === true)
        return { id: name, sessionId: null, verdict: "stale-toolbox", removed: false };
      // The engine knows who uses a volume, and refuses.
      const removed = await succeeds(engine.removeVolume(name));
      return { id: name, sessionId: null, verdict: removed ? "stale-toolbox" : "in-use", removed };
    }),
  );
}

function isStale({ labels }: VolumeSummary, toolboxHash: string, now: Date): boolean {
  const createdAt = new Date(labels[LABELS.created] ?? 0).getTime();
  const isNew = Number.isNaN(createdAt) || now.getTime() - createdAt < TOOLBOX_GRACE_MS;
  return labels[LABELS.toolbox] !== toolboxHash && !isNew;
}

/** Only of containers this sweep removed, and not where a living one has the same directory mounted. */
async function sweepPlaceholders(containers: ContainerSummary[], swept: SweptObject[]): Promise<string[]> {
  const removed = new Set(swept.filter((container) => container.removed).map(({ id }) => id));
  const paths = (isGone: boolean) =>
    containers
      .filter(({ id }) => removed.has(id) === isGone)
      .flatMap(({ labels }) => readPlaceholdersLabel(labels));
  const inUse = new Set(paths(false));
  return await removeLeftPlaceholders(paths(true).filter((path) => !inUse.has(path)));
}

function isToBeRemoved(verdict: SweepVerdict, { dryRun }: SweepOptions): boolean {
  return dryRun !== true && REMOVABLE.includes(verdict);
}

/** An engine that refuses one removal must not keep the sweep from the others. */
async function succeeds(removal: Promise<void>): Promise<boolean> {
  try {
    await removal;
    return true;
  } catch (error) {
    if (isBrigError(error, "engine.failed")) return false;
    throw error;
  }
}
