import { BrigError } from "../../errors.js";
import type { Engine } from "../docker/engine-types.js";
import { readBuildContext } from "./build-context.js";
import { compiledTags } from "./compiled-tags.js";
import { imageDefinitions } from "./definition.js";
import { ensureToolboxVolume, findToolbox, type Toolbox, toolboxIn } from "./toolbox-volume.js";

/** By architecture. The files do not change while brig runs, and each start would read them again. */
const tags = new Map<string, Promise<string>>();

/** Begins to compute the toolbox's tag, so that a later start need not wait for it. */
export function prepareToolbox(): void {
  void toolboxTag(process.arch === "x64" ? "amd64" : process.arch).catch(() => undefined);
}

/** This version's toolbox: runner, rg and so on. Error: `image.missing` if its image was never built. */
export async function requireToolbox(
  engine: Engine,
  /** To which `$BRIG_HOME` its volumes belong if they have to be made. */
  brigHome?: string,
): Promise<Toolbox> {
  const tag = await toolboxTag(engine.arch);
  const toolbox = await findToolbox(engine, tag);
  if (toolbox !== null) return toolbox;
  if ((await engine.inspectImage(tag)) === null)
    throw new BrigError("the engine does not have the toolbox image of this version", {
      code: "image.missing",
      hint: "build it with: brig image build",
    });
  return await toolboxIn(engine, await ensureToolboxVolume(engine, tag, brigHome));
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
