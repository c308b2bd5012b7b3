import type { Engine } from "../docker/engine-types.js";
import { BrigError } from "../errors.js";
import { readBuildContext } from "./build-context.js";
import { compiledTags } from "./compiled-tags.js";
import { imageDefinitions } from "./definition.js";
import { ensureToolboxVolume, findToolbox, type Toolbox, toolboxIn } from "./toolbox-volume.js";

/** By architecture: the files do not change under a program that runs, and each sandbox's start would read them again. */
const tags = new Map<string, Promise<string>>();

/** Begins to read what the toolbox is made of, so that nobody waits for it later. */
export function prepareToolbox(): void {
  void toolboxTag(process.arch === "x64" ? "amd64" : process.arch).catch(() => undefined);
}

/** This version's runner, rg and whatever else is mounted. Error: `image.missing` when their image was not built yet. */
export async function requireToolbox(engine: Engine): Promise<Toolbox> {
  const tag = await toolboxTag(engine.arch);
  // Both at once, though the image matters only without a volume: a sandbox's start waits for the answers.
  const [image, toolbox] = await Promise.all([engine.inspectImage(tag), findToolbox(engine, tag)]);
  if (toolbox !== null) return toolbox;
  if (image === null)
    throw new BrigError("the engine does not have the toolbox image of this version", {
      code: "image.missing",
      hint: "build it with: brig image build",
    });
  return await toolboxIn(engine, await ensureToolboxVolume(engine, tag));
}

async function toolboxTag(arch: string): Promise<string> {
  return compiledTags[arch] ?? (await readTag(arch));
}

function readTag(arch: string): Promise<string> {
  const known = tags.get(arch);
  if (known !== undefined) return known;
  const read = readBuildContext(imageDefinitions.toolbox, arch).then(({ tag }) => tag);
  tags.set(arch, read);
  read.catch(() => tags.delete(arch));
  return read;
}
