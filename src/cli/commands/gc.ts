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
    .option("--dry-run", "say what would be removed, and remove nothing")
    .option("--kept", "also remove containers that --keep left running and whose program has ended")
    .option(
      "--unrecorded",
      "also remove containers that look like brig's and that this user's brig did not make",
    )
    .option("--json", "print the report as JSON")
    .action(async (flags: GcFlags) => {
      const report = await collectGarbage(flags, context);
      if (flags.json === true) await writeJson(context.stdout, report);
      else await writeReport(report, flags, context);
    });
}

interface GarbageReport extends SweepReport {
  /** Empty directories that killed sessions had made on this machine, and that were removed. */
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

/** The volume that this version of brig uses, which stays whether it was filled yet or not. */
async function currentToolbox(engine: Engine): Promise<string> {
  const { arch } = await engine.info();
  const { context } = await findImage(engine, { name: "toolbox", arch });
  return context.tag.slice(context.tag.lastIndexOf(":") + 1);
}

const reasons: Record<SweepVerdict, string> = {
  "owner-gone": "its program has ended",
  "never-started": "it was never started",
  "stale-toolbox": "another version's toolbox",
  "owner-alive": "its program is running",
  "kept-on-request": "kept by --keep; --kept removes it",
  "other-machine": "made by another machine",
  "unreadable-labels": "its labels cannot be read",
  unrecorded: "it has brig's labels, but this user's brig did not make it; --unrecorded removes it",
  "in-use": "another version's toolbox, in use",
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
      "an empty place held for a dead session",
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
