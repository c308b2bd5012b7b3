import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { BuildProgress, sizeArgument, write } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import type { Engine, ImageName, ImageProgress, PullProgress } from "../../sandbox/index.js";
import { connectEngine, ensureImages, ensureToolboxVolume, imageDefinitions } from "../../sandbox/index.js";
import type { PruneFlags } from "./prune-command.js";

const defaultNames: ImageName[] = ["toolbox", "base"];

export function defineImage(command: Command, context: CliContext): void {
  command.action(() => {
    throw invalidUsage("brig image needs a subcommand: build, ls or prune", "see: brig image --help");
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
    .description("list brig's images, and those that it built for tasks and projects")
    .option("--json", "print the list as JSON")
    .action(async (flags: { json?: boolean }) => {
      const { listAllImages } = await import("./list-command.js");
      await listAllImages(await connectEngine({ env: context.environment }), flags, context);
    });
  command
    .command("prune")
    .description("remove images and toolbox volumes of other brig versions that no container uses")
    .option("--tasks", "also remove the images built for tasks and projects that nobody needs")
    .option(
      "--image-budget <size>",
      "also remove images built for tasks and projects, used longest ago first, until the rest take no more than this, such as 50GB",
      sizeArgument,
    )
    .option("--dry-run", "only print what would be removed")
    .option("--json", "print the report as JSON")
    .action(async (flags: PruneFlags) => {
      const { pruneAllImages } = await import("./prune-command.js");
      await pruneAllImages(await connectEngine({ env: context.environment }), flags, context);
    });
}

function collectName(name: string, before: ImageName[] = []): ImageName[] {
  if (isImageName(name)) return [...before, name];
  throw invalidUsage(
    `brig has no image ${JSON.stringify(name)}`,
    `use one of ${Object.keys(imageDefinitions).join(", ")}`,
  );
}

function isImageName(name: string): name is ImageName {
  return Object.hasOwn(imageDefinitions, name);
}

async function buildImages(names: ImageName[], context: CliContext): Promise<void> {
  const engine = await connectEngine({ env: context.environment });
  const tags = await ensureShown(engine, names, context);
  await write(context.stdout, names.map((name) => `${tags[name]}\n`).join(""));
}

async function ensureShown(
  engine: Engine,
  names: ImageName[],
  { environment: { brigHome, forbidsColor }, signal, stderr }: CliContext,
): Promise<Partial<Record<ImageName, string>>> {
  const subject = (image: string) => `the image ${image}`;
  using progress = new BuildProgress(stderr, { subject, usesColour: !forbidsColor });
  const onProgress: PullProgress = (line, pulled) =>
    progress.tell({ ...asProgress(line), task: null, pulled });
  const tags: Partial<Record<ImageName, string>> = await ensureImages(engine, {
    ...{ names, signal, brigHome, onProgress },
  });
  if (tags.toolbox !== undefined) await ensureToolboxVolume(engine, tags.toolbox, brigHome);
  return tags;
}

/** A line begins with the image that it is about: one that is built, or Debian's. */
function asProgress(line: string): Pick<ImageProgress, "image" | "stage" | "line"> {
  const [, image = "", rest = line] = /^([a-z-]+): (.*)$/s.exec(line) ?? [];
  return { image, stage: isImageName(image) ? "build" : "pull", line: rest };
}
