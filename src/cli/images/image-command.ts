import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { sizeArgument, write } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { createProgress } from "../../lib/terminal/progress.js";
import type { ImageName } from "../../sandbox/index.js";
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
  const { environment, signal, stderr, stdout } = context;
  const engine = await connectEngine({ env: environment });
  const progress = createProgress(stderr, { usesColour: !environment.forbidsColor });
  try {
    const tags: Partial<Record<ImageName, string>> = await ensureImages(engine, {
      names,
      onProgress: progress.step,
      signal,
      brigHome: environment.brigHome,
    });
    if (tags.toolbox !== undefined) await ensureToolboxVolume(engine, tags.toolbox, environment.brigHome);
    progress.close();
    await write(stdout, names.map((name) => `${tags[name]}\n`).join(""));
  } finally {
    progress.close();
  }
}
