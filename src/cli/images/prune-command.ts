import type { CliContext } from "../../command/index.js";
import { write, writeJson, writeTable } from "../../command/index.js";
import { formatBytes } from "../../lib/bytes.js";
import type { Engine, PrunedObject, PruneReport } from "../../sandbox/index.js";
import { BuiltImageStore, pruneImages } from "../../sandbox/index.js";

export interface PruneFlags {
  dryRun?: boolean;
  tasks?: boolean;
  imageBudget?: number;
  json?: boolean;
}

/** Another user of the engine may be about to start a container from an image that was used so lately. */
const RECENT_USE_MS = 60_000;

/** Removes brig's own images of other versions, and as many of those of tasks as the flags say. */
export async function pruneAllImages(
  engine: Engine,
  flags: PruneFlags,
  { stdout, signal }: CliContext,
): Promise<void> {
  const isDryRun = flags.dryRun === true;
  const own = await pruneImages(engine, { isDryRun });
  const budgetBytes = flags.imageBudget ?? (flags.tasks === true ? 0 : null);
  const ofTasks =
    budgetBytes === null
      ? { objects: [], bytes: 0, kept: 0 }
      : await pruneTaskImages(engine, { budgetBytes, isDryRun, signal });
  const report = {
    objects: [...own.objects, ...ofTasks.objects],
    bytes: own.bytes + ofTasks.bytes,
  };
  if (flags.json === true) return await writeJson(stdout, report);
  await writePruned(report, isDryRun, stdout);
  if (ofTasks.kept > 0)
    await write(
      stdout,
      `${ofTasks.kept === 1 ? "1 image of a task or project stays" : `${ofTasks.kept} images of tasks and projects stay`}: needed, used in the last minute, or within the budget\n`,
    );
}

async function pruneTaskImages(
  engine: Engine,
  { budgetBytes, isDryRun, signal }: { budgetBytes: number; isDryRun: boolean; signal: AbortSignal },
): Promise<PruneReport & { kept: number }> {
  const usedBefore = new Date(Date.now() - RECENT_USE_MS);
  const { removed, kept, bytesBefore, bytesAfter } = await new BuiltImageStore(engine).tidy({
    budgetBytes,
    usedBefore,
    isDryRun,
    signal,
  });
  const objects = removed.map(({ tag, freedBytes }): PrunedObject => {
    return { kind: "image", names: [tag], bytes: freedBytes, verdict: "unused", removed: !isDryRun };
  });
  return { objects, bytes: bytesBefore - bytesAfter, kept };
}

async function writePruned(
  { objects, bytes }: PruneReport,
  isDryRun: boolean,
  stdout: CliContext["stdout"],
): Promise<void> {
  if (objects.length === 0) return await write(stdout, "nothing to remove\n");
  const fates = {
    unused: isDryRun ? "would be removed" : "removed",
    "in-use": "stays: a container uses it",
    refused: "stays: the engine refuses to remove it, perhaps because another image is built on it",
  };
  const rows = objects.map((one) => [
    one.kind,
    one.names.join(" "),
    formatBytes(one.bytes),
    fates[one.verdict],
  ]);
  await writeTable(stdout, rows);
  await write(stdout, `${isDryRun ? "would free" : "freed"} ${formatBytes(bytes)}\n`);
}
