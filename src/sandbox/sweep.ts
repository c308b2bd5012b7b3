import type { ContainerSummary, Engine, VolumeSummary } from "../docker/engine-types.js";
import { isBrigError } from "../errors.js";
import { type HostProcesses, ownerState } from "../lib/owner.js";
import { LABELS, readSessionLabels } from "./labels.js";
import type { SandboxRecord } from "./sandbox-records.js";

export interface SweepOptions {
  now: Date;
  processes: HostProcesses;
  /** Report what would be removed, and remove nothing. */
  dryRun?: boolean | undefined;
  /** What this machine's user knows of sandboxes. A container that is in none of them is only reported: anybody can write labels. */
  records: readonly Pick<SandboxRecord, "sessionId" | "containerId">[];
  /** Also remove containers that no record names. */
  includeUnrecorded?: boolean | undefined;
  /** Also remove containers of dead owners that `--keep` was asked for. */
  includeKept?: boolean | undefined;
  /** The label of toolbox volumes and its value on the one in use; without it no volume is looked at. */
  toolbox?: { label: string; hash: string } | undefined;
}

export interface SweepReport {
  containers: SweptObject[];
  volumes: SweptObject[];
}

export interface SweptObject {
  /** Container id or volume name. */
  id: string;
  /** Null for what belongs to no session. */
  sessionId: string | null;
  verdict: SweepVerdict;
  /** False with `dryRun`, and when the engine refused. */
  removed: boolean;
  /** Why what should have been removed is still there, in the engine's words. */
  failure?: string | undefined;
}

export type SweepVerdict =
  | "owner-gone"
  | "never-started"
  | "stale-toolbox"
  | "owner-alive"
  | "kept-on-request"
  | "other-machine"
  | "unreadable-labels"
  | "unrecorded"
  | "in-use";

type SweptEngine = Pick<Engine, "listContainers" | "removeContainer" | "listVolumes" | "removeVolume">;

const REMOVABLE: readonly SweepVerdict[] = ["owner-gone", "never-started", "stale-toolbox"];
/** Between create and start of a container: on a busy engine this took seconds. */
const START_GRACE_MS = 60_000;
/** Filling a toolbox volume takes seconds; a container that does it and is this old was left by a killed brig. */
const TOOLBOX_GRACE_MS = 600_000;

/**
 * Removes what dead sessions of this machine left: containers whose owner is certainly gone or that were never started,
 * and unused volumes of other toolboxes. What another machine made, or what cannot be told, stays.
 */
export async function sweep(engine: SweptEngine, options: SweepOptions): Promise<SweepReport> {
  const containers = await engine.listContainers([LABELS.session]);
  const swept = await Promise.all(
    containers.map(async (container) => await sweepContainer(engine, container, options)),
  );
  const toolboxes =
    options.toolbox === undefined ? null : await sweepToolboxes(engine, options.toolbox, options);
  return {
    containers: [...swept, ...(toolboxes?.containers ?? [])],
    volumes: toolboxes?.volumes ?? [],
  };
}

/** What a sweep would do with one container. */
async function judgeContainer(container: ContainerSummary, options: SweepOptions): Promise<SweepVerdict> {
  const verdict = await judgeLabels(container, options);
  return REMOVABLE.includes(verdict) && !isRecorded(container, options) ? "unrecorded" : verdict;
}

function isRecorded({ id, labels }: ContainerSummary, { records, includeUnrecorded }: SweepOptions): boolean {
  if (includeUnrecorded === true) return true;
  const sessionId = labels[LABELS.session];
  return records.some((one) => one.sessionId === sessionId && (one.containerId ?? id) === id);
}

async function judgeLabels(container: ContainerSummary, options: SweepOptions): Promise<SweepVerdict> {
  const mark = readSessionLabels(container.labels);
  if (mark === null) return "unreadable-labels";
  const state = await ownerState(mark.owner, options.processes);
  if (state === "elsewhere") return "other-machine";
  const graceMs = Math.max(mark.leaseSeconds * 1000, START_GRACE_MS);
  const isLate = options.now.getTime() - mark.createdAt.getTime() > graceMs;
  // Nobody is left to start it: not even --keep was for this one.
  if (container.state === "created" && (isLate || state === "gone")) return "never-started";
  if (state === "alive") return "owner-alive";
  return mark.leaseSeconds === 0 && options.includeKept !== true ? "kept-on-request" : "owner-gone";
}

async function sweepContainer(
  engine: SweptEngine,
  container: ContainerSummary,
  options: SweepOptions,
): Promise<SweptObject> {
  const verdict = await judgeContainer(container, options);
  const isDoomed = options.dryRun !== true && REMOVABLE.includes(verdict);
  const outcome = isDoomed ? await outcomeOf(engine.removeContainer(container.id)) : { removed: false };
  return { id: container.id, sessionId: container.labels[LABELS.session] ?? null, verdict, ...outcome };
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
  for (const { id } of fillers) {
    const isDoomed = options.dryRun !== true && REMOVABLE.includes(verdict);
    const outcome = isDoomed ? await outcomeOf(engine.removeContainer(id)) : { removed: false };
    containers.push({ id, sessionId: null, verdict, ...outcome });
  }
  const stale = (await engine.listVolumes([label])).filter(({ labels }) => labels[label] !== hash);
  const volumes: SweptObject[] = [];
  for (const [, names] of groupByHash(stale, label))
    volumes.push(...(await sweepVolumes(engine, names, options)));
  return { containers, volumes };
}

/** The volumes of one toolbox, the one that holds the files first: its name is the beginning of the others'. */
function groupByHash(volumes: readonly VolumeSummary[], label: string): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { name, labels } of volumes.toSorted((a, b) => a.name.length - b.name.length))
    groups.set(labels[label] ?? "", [...(groups.get(labels[label] ?? "") ?? []), name]);
  return groups;
}

/** All or, while a container uses the first, none. The engine knows that, and refuses. */
async function sweepVolumes(
  engine: SweptEngine,
  names: string[],
  options: SweepOptions,
): Promise<SweptObject[]> {
  const swept: SweptObject[] = [];
  for (const id of names) {
    const isUsed = swept.some(({ verdict }) => verdict === "in-use");
    const mayGo = !isUsed && options.dryRun !== true;
    // An engine that refuses says that a container uses it.
    const { removed } = mayGo ? await outcomeOf(engine.removeVolume(id)) : { removed: false };
    const verdict = removed || options.dryRun === true ? "stale-toolbox" : "in-use";
    swept.push({ id, sessionId: null, verdict, removed });
  }
  return swept;
}

/** An engine that refuses one removal must not keep the sweep from the others. */
async function outcomeOf(removal: Promise<void>): Promise<Pick<SweptObject, "removed" | "failure">> {
  try {
    await removal;
    return { removed: true };
  } catch (error) {
    if (isBrigError(error, "engine.failed")) return { removed: false, failure: error.message };
    throw error;
  }
}
