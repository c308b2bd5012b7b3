import { hostname } from "node:os";
import type { Command } from "commander";
import { connectEngine } from "../../docker/connect.js";
import type { Engine } from "../../docker/engine-types.js";
import { findImage } from "../../images/find-image.js";
import { toolboxLabel } from "../../images/toolbox-volume.js";
import { readHostProcesses } from "../../lib/owner.js";
import { readRecords, reclaimPlaceholders } from "../../sandbox/sandbox-records.js";
import { type SweepReport, type SweepVerdict, type SweptObject, sweep } from "../../sandbox/sweep.js";
import type { CliContext } from "../context.js";
import { write, writeJson, writeTable } from "../render.js";

interface GcFlags {
  dryRun?: boolean;
  kept?: boolean;
  unrecorded?: boolean;
  json?: boolean;
}

export function defineGc(command: Command, context: CliContext): void {
  command
    .option("--dry-run", "only print what would be removed")
    .option("--kept", "also remove containers left running by --keep, if the brig that made them has ended")
    .option(
      "--unrecorded",
      "also remove containers that have brig's labels but were not made by this user's brig",
    )
    .option("--json", "print the report as JSON")
    .action(async (flags: GcFlags) => {
      const report = await collectGarbage(flags, context);
      if (flags.json === true) await writeJson(context.stdout, report);
      else await writeReport(report, flags, context);
    });
}

interface GarbageReport extends SweepReport {
  /** The empty directories of killed sessions that were removed from this machine. */
  placeholders: string[];
}

async function collectGarbage(
  { dryRun, kept, unrecorded }: GcFlags,
  { environment }: CliContext,
): Promise<GarbageReport> {
  const engine = await connectEngine({ env: environment });
  const processes = await readHostProcesses(hostname());
  const { brigHome } = environment;
  const report = await sweep(engine, {
    now: new Date(),
    processes,
    dryRun,
    records: await readRecords(brigHome),
    includeKept: kept,
    includeUnrecorded: unrecorded,
    toolbox: { label: toolboxLabel, hash: await currentToolbox(engine) },
  });
  const placeholders = dryRun === true ? [] : await reclaimPlaceholders(engine, { brigHome, processes });
  return { ...report, placeholders };
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
  "owner-alive": "its program is running",
  "kept-on-request": "kept by --keep; remove it with --kept",
  "other-machine": "made on another machine",
  "unreadable-labels": "its labels cannot be read",
  unrecorded: "has brig's labels, but this user's brig did not make it; remove it with --unrecorded",
  "in-use": "the toolbox of another version, in use",
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
  ];
  if (rows.length === 0) await write(stdout, "nothing to remove\n");
  else await writeTable(stdout, rows);
}

function describeObject(
  kind: string,
  { id, verdict, removed, failure }: SweptObject,
  isDryRun: boolean,
): string[] {
  const isGarbage = verdict === "owner-gone" || verdict === "never-started" || verdict === "stale-toolbox";
  const fate = removed ? "removed" : !isGarbage ? "stays" : isDryRun ? "would be removed" : "stays";
  return [kind, kind === "container" ? id.slice(0, 12) : id, fate, failure ?? reasons[verdict]];
}
