import type { Command } from "commander";
import { connectEngine } from "../../docker/connect.js";
import { BrigError } from "../../errors.js";
import { type ImageName, imageDefinitions } from "../../images/definition.js";
import { ensureImages } from "../../images/ensure.js";
import { type ListedImage, listImages } from "../../images/list.js";
import { type PruneReport, pruneImages } from "../../images/prune.js";
import { ensureToolboxVolume } from "../../images/toolbox-volume.js";
import { formatBytes } from "../../lib/bytes.js";
import { createProgress } from "../../lib/terminal/progress.js";
import type { CliContext } from "../context.js";
import { write, writeJson, writeTable } from "../render.js";

const defaultNames: ImageName[] = ["toolbox", "base"];

export function defineImage(command: Command, context: CliContext): void {
  command.action(() => {
    throw new BrigError("brig image needs a subcommand: build, ls or prune", {
      code: "usage.invalid",
      hint: "see: brig image --help",
    });
  });
  command
    .command("build")
    .description("build the images that are missing or out of date")
    .argument(
      "[names...]",
      `any of ${Object.keys(imageDefinitions).join(", ")} (default: toolbox base)`,
      collectName,
    )
    .action((names: ImageName[]) => buildImages(names.length === 0 ? defaultNames : names, context));
  command
    .command("ls")
    .description("list brig's images")
    .option("--json", "print the list as JSON")
    .action(async (flags: { json?: boolean }) => {
      const images = await listImages(await connectEngine({ env: context.environment }));
      if (flags.json === true) await writeJson(context.stdout, images);
      else await writeImages(images, context);
    });
  command
    .command("prune")
    .description("remove images and toolbox volumes of other brig versions that no container uses")
    .option("--dry-run", "only print what would be removed")
    .option("--json", "print the report as JSON")
    .action(async ({ dryRun: isDryRun = false, json }: { dryRun?: boolean; json?: boolean }) => {
      const report = await pruneImages(await connectEngine({ env: context.environment }), { isDryRun });
      if (json === true) await writeJson(context.stdout, report);
      else await writePruned(report, isDryRun, context);
    });
}

function collectName(name: string, before: ImageName[] = []): ImageName[] {
  if (isImageName(name)) return [...before, name];
  throw new BrigError(`brig has no image ${JSON.stringify(name)}`, {
    code: "usage.invalid",
    hint: `use one of ${Object.keys(imageDefinitions).join(", ")}`,
  });
}

function isImageName(name: string): name is ImageName {
  return Object.hasOwn(imageDefinitions, name);
}

async function buildImages(names: ImageName[], context: CliContext): Promise<void> {
  const { environment, signal, stderr, stdout } = context;
  const engine = await connectEngine({ env: environment });
  const progress = createProgress(stderr, { usesColour: !environment.forbidsColor });
  try {
    const tags: Partial<Record<ImageName, string>> = await ensureImages(engine, {
      names,
      onProgress: progress.step,
      signal,
      mayInstall: !environment.forbidsInstall,
    });
    if (tags.toolbox !== undefined) await ensureToolboxVolume(engine, tags.toolbox);
    progress.close();
    await write(stdout, names.map((name) => `${tags[name]}\n`).join(""));
  } finally {
    progress.close();
  }
}

async function writeImages(images: ListedImage[], { stdout }: CliContext): Promise<void> {
  if (images.length === 0) return await write(stdout, "no images; build them with: brig image build\n");
  const rows = images.map(({ name, tags, sizeBytes, createdAt, isCurrent }) => [
    name,
    tags.join(" ") || "(untagged)",
    formatBytes(sizeBytes),
    createdAt.toISOString().slice(0, 16).replace("T", " "),
    isCurrent ? "current" : "out of date",
  ]);
  await writeTable(stdout, [["NAME", "TAGS", "SIZE", "CREATED", "STATE"], ...rows]);
}

async function writePruned(
  { objects, bytes }: PruneReport,
  isDryRun: boolean,
  { stdout }: CliContext,
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
