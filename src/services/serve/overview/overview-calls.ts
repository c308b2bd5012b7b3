import { visibleLine } from "../../../lib/terminal/visible-line.js";
import { planOf } from "../../../sandbox/index.js";
import { readVersion } from "../../../version.js";
import type { Calls } from "../http/response.js";
import type { ClientRights } from "../http/served-client.js";
import type { Capacity } from "../sandboxes/capacity.js";
import { commandText, type SeenCommand } from "../sandboxes/command-log.js";
import type { SandboxSet } from "../sandboxes/sandbox-set.js";
import type { ServedSandbox } from "../sandboxes/served-sandbox.js";
import type {
  CommandRow,
  Overview,
  ReadOverview,
  SandboxOverview,
  SandboxRow,
} from "../wire/overview-schemas.js";

interface OverviewOptions {
  sandboxes: SandboxSet;
  capacity: Capacity;
  /** Aborted when nothing new begins any more. */
  drain: AbortSignal;
}

interface Viewer {
  name: string;
  rights: ClientRights;
}

/** How the page at `/` is told what there is. What it says is for people: all texts are single lines that hide nothing, and short. */
export function overviewCalls(options: OverviewOptions): Pick<Calls, "readOverview" | "readSandboxOverview"> {
  const { sandboxes } = options;
  return {
    readOverview: async ({ client, rights, query }) => ({
      kind: "json",
      value: overviewOf({ name: client, rights }, query, options),
    }),
    readSandboxOverview: async ({ client, rights, id, query }) => ({
      kind: "json",
      value: sandboxOverviewOf(sandboxes.seen({ client, rights, id }), { name: client, rights }, query),
    }),
  };
}

function overviewOf(viewer: Viewer, query: ReadOverview, options: OverviewOptions): Overview {
  const { sandboxes, capacity, drain } = options;
  const { maxPlaces, maxPerClient, maxWaiting } = capacity.limits;
  const seen = sandboxes.all().filter(({ client }) => viewer.rights.seesAll || client === viewer.name);
  const matching = seen.filter((sandbox) => hasText(sandbox, query.text));
  const uses = capacity.uses.filter(({ client }) => viewer.rights.seesAll || client === viewer.name);
  return {
    version: readVersion(),
    status: drain.aborted ? "draining" : "ok",
    client: shownViewer(viewer),
    places: {
      ...{ taken: capacity.takenCount, max: maxPlaces, maxPerClient },
      ...{ waiting: capacity.waitingCount, maxWaiting },
    },
    clients: uses.map(({ client, quota, ...used }) => ({
      ...{ name: shown(client), ...used },
      quota: {
        maxSandboxes: quota.maxSandboxes ?? null,
        cpus: quota.cpus ?? null,
        memoryMb: quota.memoryMb ?? null,
        minutesPerDay: quota.minutesPerDay ?? null,
      },
    })),
    total: seen.length,
    matching: matching.length,
    sandboxes: matching
      .toSorted(orders[query.order])
      .slice(query.from, query.from + query.count)
      .map((sandbox) => rowOf(sandbox, LISTED_LABELS)),
  };
}

function sandboxOverviewOf(
  sandbox: ServedSandbox,
  viewer: Viewer,
  { from, count }: { from: number; count: number },
): SandboxOverview {
  const commands = commandsOf(sandbox).toSorted(inShownOrder);
  return {
    client: shownViewer(viewer),
    sandbox: rowOf(sandbox, Number.POSITIVE_INFINITY),
    commandCount: commands.length,
    commands: commands.slice(from, from + count).map(shownCommand),
    hosts: (sandbox.egress?.list() ?? []).map(({ host, allowed, refused, failed, latestAtMs }) => ({
      ...{ host: host === null ? null : shown(host), allowed, refused, failed },
      latestMs: agoMs(latestAtMs),
    })),
  };
}

const orders: Record<ReadOverview["order"], (one: ServedSandbox, other: ServedSandbox) => number> = {
  newest: (one, other) => other.times.createdAtMs - one.times.createdAtMs,
  oldest: (one, other) => one.times.createdAtMs - other.times.createdAtMs,
  idle: (one, other) =>
    (one.times.idleSinceMs ?? Number.MAX_VALUE) - (other.times.idleSinceMs ?? Number.MAX_VALUE),
  expiring: (one, other) => one.times.expiresAtMs - other.times.expiresAtMs,
};

function hasText({ id, client, record, labels }: ServedSandbox, text: string): boolean {
  const { image, mode, network } = record;
  const texts = [id, client, image, mode ?? "", network, ...labelTexts(labels)];
  return texts.some((one) => one.toLowerCase().includes(text.toLowerCase()));
}

/** So many labels are in the row of a sandbox among others. */
const LISTED_LABELS = 4;

function rowOf(sandbox: ServedSandbox, maxLabels: number): SandboxRow {
  const { record, times, labels, egress } = sandbox;
  const latest = latestOf(commandsOf(sandbox));
  const usage = sandbox.hasEnded ? null : sandbox.usage.latest();
  return {
    id: sandbox.id,
    client: shown(sandbox.client),
    state: record.state,
    image: shown(record.image),
    mode: record.mode,
    network: shown(record.network),
    labels: labelTexts(labels).slice(0, maxLabels).map(shown),
    labelCount: Object.keys(labels).length,
    ageMs: agoMs(times.createdAtMs),
    idleForMs: times.idleSinceMs === null ? null : agoMs(times.idleSinceMs),
    idleMs: record.idleMs,
    expiresInMs: Math.max(0, times.expiresAtMs - Date.now()),
    runningCount: sandbox.commands.runningCount + sandbox.processes.runningCount,
    latest: latest && shownCommand(latest),
    egress: egress === null ? null : { ...egress.totals },
    cpuPercent: usage?.cpuPercent ?? null,
    memoryBytes: usage?.memoryBytes ?? null,
    memoryLimitBytes: planOf(sandbox.sandbox).limits.memoryBytes,
  };
}

/** A command of exec, or a process. */
type Command = Omit<SeenCommand, "text"> & { process: string | null; text: () => string };

function commandsOf({ processes, commands }: ServedSandbox): Command[] {
  return [
    ...processes.list().map(({ id, argv, startedAtMs, ending: end }) => ({
      ...{ process: id, startedAtMs, end, text: () => commandText(argv) },
    })),
    ...commands.list().map(({ text, ...times }) => ({ ...times, process: null, text: () => text })),
  ];
}

/** Those that run come first, each group from the newest. */
function inShownOrder(one: Command, other: Command): number {
  if ((one.end === null) !== (other.end === null)) return one.end === null ? -1 : 1;
  return other.startedAtMs - one.startedAtMs;
}

function latestOf(commands: readonly Command[]): Command | null {
  return commands.reduce<Command | null>(
    (latest, one) => (latest === null || one.startedAtMs >= latest.startedAtMs ? one : latest),
    null,
  );
}

function shownCommand({ process, text, startedAtMs, end }: Command): CommandRow {
  return {
    process,
    command: shown(text()),
    state: end === null ? "running" : "ended",
    ...{ exitCode: end?.exitCode ?? null, signal: end?.signal ?? null, timedOut: end?.timedOut ?? false },
    ageMs: agoMs(startedAtMs),
    tookMs: end === null ? null : Math.max(0, end.atMs - startedAtMs),
  };
}

function shownViewer({ name, rights }: Viewer): Overview["client"] {
  return { name: shown(name), ...rights };
}

function labelTexts(labels: Readonly<Record<string, string>>): string[] {
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`);
}

const MAX_SHOWN_CHARS = 400;

/** A text that somebody else has chosen, as one short line that hides nothing. */
function shown(text: string): string {
  // What it hides becomes longer.
  const line = visibleLine(text.slice(0, MAX_SHOWN_CHARS));
  const isCut = text.length > MAX_SHOWN_CHARS || line.length > MAX_SHOWN_CHARS;
  return isCut ? `${line.slice(0, MAX_SHOWN_CHARS)}…` : line;
}

function agoMs(atMs: number): number {
  return Math.max(0, Math.round(Date.now() - atMs));
}
