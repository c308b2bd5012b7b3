import { hostname } from "node:os";
import { type Command, InvalidArgumentError } from "commander";
import type { CliContext } from "../../command/index.js";
import { write, writeJson, writeTable } from "../../command/index.js";
import { readCurrentProcess } from "../../lib/file-lock.js";
import { readHostProcesses } from "../../lib/owner.js";
import type {
  Engine,
  ImageName,
  SweepReport,
  SweepVerdict,
  SweptObject,
  UnfinishedLabel,
} from "../../sandbox/index.js";
import {
  BuiltImageStore,
  buildsHold,
  cacheLabel,
  connectEngine,
  findImage,
  findImages,
  homeId,
  homeLabel,
  imageDefinitions,
  isHeld,
  isLocked,
  memoryLabel,
  openSandbox,
  REMOVABLE,
  reclaimPlaceholders,
  recordedNow,
  removeLeftQuarantines,
  removeOldSnapshots,
  removeUnfinished,
  removeUnfinishedContents,
  removeUnfinishedSnapshots,
  resolveSettings,
  sweep,
  toolboxLabel,
  treeLabel,
  undoKilledApplies,
  unfinishedImages,
} from "../../sandbox/index.js";
import { forgetEndedOwners } from "../ports/forget-ended-owners.js";

const DAY_MS = 24 * 60 * 60 * 1000;

interface GcFlags {
  dryRun?: boolean;
  kept?: boolean;
  unrecorded?: boolean;
  snapshots?: number;
  json?: boolean;
}

export function defineGc(command: Command, context: CliContext): void {
  command
    .option("--dry-run", "only print what would be removed")
    .option("--kept", "also remove containers left running by --keep, if the brig that made them has ended")
    .option(
      "--unrecorded",
      "also remove what has brig's labels but was made by another user or for another BRIG_HOME",
    )
    .option(
      "--snapshots <days>",
      "also remove changes of copy-on-write workspaces, and earlier states, kept more than this many days ago",
      wholeDays,
    )
    .option("--json", "print the report as JSON")
    .action(async (flags: GcFlags) => {
      const report = await collectGarbage(flags, context);
      if (flags.json === true) await writeJson(context.stdout, report);
      else await writeReport(report, flags, context);
    });
}

function wholeDays(text: string): number {
  if (/^[0-9]{1,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a number of days.");
}

interface GarbageReport extends SweepReport {
  /** The empty directories of killed sessions that were removed from this machine. */
  placeholders: string[];
  /** The workspaces in which an apply was undone because its process was killed. */
  undoneApplies: string[];
  /** How many incomplete snapshots of killed processes were removed. */
  incompleteSnapshots: number;
  /** How many incomplete contents were removed from other snapshots of killed processes. */
  incompleteContents: number;
  /** The ids of kept changes that were removed, or with `--dry-run` would be, because of their age. */
  oldSnapshots: string[];
  /** How many images built for tasks the engine has. They stay: they save later runs the time to build them. */
  taskImages: number;
  /** The ids of images without a name that builds have left, and that were removed, or with `--dry-run` would be. */
  unfinishedImages: string[];
  /** How many quarantines of commits were removed because their process was killed. */
  quarantines: number;
}

async function collectGarbage(
  { dryRun, kept, unrecorded, snapshots: keptDays }: GcFlags,
  { environment, signal }: CliContext,
): Promise<GarbageReport> {
  const engine = await connectEngine({ env: environment });
  const processes = await readHostProcesses(hostname());
  const { brigHome } = environment;
  const report = await sweep(engine, {
    now: new Date(),
    processes,
    dryRun,
    records: recordedNow(brigHome),
    includeKept: kept,
    includeUnrecorded: unrecorded,
    toolbox: { label: toolboxLabel, hash: await currentToolbox(engine) },
    cacheLabel,
    home: { label: homeLabel, id: homeId(brigHome) },
    sessionVolumeLabels: [treeLabel, memoryLabel],
  });
  const oldSnapshots =
    keptDays === undefined
      ? []
      : await removeOldSnapshots(brigHome, {
          before: new Date(Date.now() - keptDays * DAY_MS),
          processes,
          dryRun: dryRun === true,
        });
  const unfinished = await unfinishedOf(engine, { brigHome, dryRun: dryRun === true });
  const taskImages = (await new BuiltImageStore(engine).list()).length;
  const nothing = { incompleteSnapshots: 0, incompleteContents: 0, quarantines: 0 };
  const nothingElse = { placeholders: [], undoneApplies: [], ...nothing };
  const images = { taskImages, unfinishedImages: unfinished };
  if (dryRun === true) return { ...report, oldSnapshots, ...images, ...nothingElse };
  await forgetEndedOwners(brigHome);
  return {
    ...report,
    oldSnapshots,
    ...images,
    placeholders: await reclaimPlaceholders(engine, { brigHome, processes }),
    undoneApplies: await undoKilledApplies(brigHome, async (workspace) => {
      const settings = resolveSettings({ workspace, workspaceKind: "overlay", environment });
      return await openSandbox(settings, { engine, signal });
    }),
    incompleteSnapshots: await removeUnfinishedSnapshots(brigHome, processes),
    incompleteContents: await removeUnfinishedContents(brigHome, processes),
    quarantines: await removeLeftQuarantines(brigHome, processes),
  };
}

/** Unnamed images that builds have left. Images that a running build may still need are not among them. */
async function unfinishedOf(
  engine: Engine,
  { brigHome, dryRun }: { brigHome: string; dryRun: boolean },
): Promise<string[]> {
  const { processes } = await readCurrentProcess();
  const own = await findImages(engine, Object.keys(imageDefinitions) as ImageName[]);
  const areBuilt = await Promise.all(own.map(({ context }) => isLocked(context.tag, processes)));
  const labels: UnfinishedLabel[] = [];
  if (!(await isHeld(buildsHold, processes))) labels.push("brig.unfinished-task-image");
  if (!areBuilt.includes(true)) labels.push("brig.unfinished-image");
  const act = dryRun ? unfinishedImages : removeUnfinished;
  const found: string[] = [];
  for (const label of labels) found.push(...(await act(engine, label, brigHome)));
  return found;
}

/** The hash of this version's toolbox volume, which is never removed, even if it is not filled yet. */
async function currentToolbox(engine: Engine): Promise<string> {
  const { arch } = await engine.info();
  const { context } = await findImage(engine, { name: "toolbox", arch });
  return context.tag.slice(context.tag.lastIndexOf(":") + 1);
}

const reasons: Record<SweepVerdict, string> = {
  "owner-gone": "its program has ended",
  "never-started": "it was never started",
  "stale-toolbox": "the toolbox of another version",
  "unused-cache": "what an MCP server downloaded, not in use",
  "owner-alive": "its program is running",
  "kept-on-request": "kept by --keep; remove it with --kept",
  "other-machine": "made on another machine",
  "unreadable-labels": "its labels cannot be read",
  unrecorded: "made by another user or BRIG_HOME; --unrecorded removes it",
  "in-use": "the toolbox of another version, in use",
  "cache-in-use": "what an MCP server downloaded, in use",
};

async function writeReport(
  report: GarbageReport,
  { dryRun = false }: GcFlags,
  { stdout }: CliContext,
): Promise<void> {
  const rows = [
    ...report.containers.map((container) => describeObject("container", container, dryRun)),
    ...report.volumes.map((volume) => describeObject("volume", volume, dryRun)),
    ...report.placeholders.map((path) => [
      "directory",
      path,
      "removed",
      "an empty directory of a dead session",
    ]),
    ...report.undoneApplies.map((path) => ["apply", path, "undone", "brig apply was killed"]),
    ...rowOfIncomplete("snapshots", report.incompleteSnapshots),
    ...rowOfIncomplete("contents", report.incompleteContents),
    ...report.oldSnapshots.map((id) => [
      "changes",
      id,
      dryRun ? "would be removed" : "removed",
      "kept long ago",
    ]),
    ...report.unfinishedImages.map((id) => [
      "image",
      id.replace(/^sha256:/, "").slice(0, 12),
      dryRun ? "would be removed" : "removed",
      "left by a build",
    ]),
    ...(report.quarantines === 0
      ? []
      : [["quarantine", String(report.quarantines), "removed", "commits that did not arrive"]]),
  ];
  if (rows.length === 0) await write(stdout, "nothing to remove\n");
  else await writeTable(stdout, rows);
  if (report.taskImages > 0)
    await write(
      stdout,
      `${report.taskImages} ${report.taskImages === 1 ? "image" : "images"} of tasks stay; those that nobody needs are removed by: brig image prune --tasks\n`,
    );
}

function rowOfIncomplete(what: string, count: number): string[][] {
  return count === 0 ? [] : [[what, String(count), "removed", "never complete, and their program has ended"]];
}

function describeObject(
  kind: string,
  { id, verdict, removed, failure }: SweptObject,
  isDryRun: boolean,
): string[] {
  const isGarbage = REMOVABLE.includes(verdict);
  const fate = removed ? "removed" : !isGarbage ? "stays" : isDryRun ? "would be removed" : "stays";
  return [kind, kind === "container" ? id.slice(0, 12) : id, fate, failure ?? reasons[verdict]];
}
