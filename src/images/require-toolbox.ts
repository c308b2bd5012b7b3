import type { Engine } from "../docker/types.js";
import { BrigError } from "../errors.js";
import { readBuildContext } from "./build-context.js";
import { imageDefinitions } from "./definition.js";
import type { WantedImage } from "./look.js";
import { ensureToolboxVolume, hasToolboxVolume, toolboxVolumeName } from "./toolbox-volume.js";

/** The volume with this version's runner and rg. Error: `image.missing` when its image was not built yet. */
export async function requireToolbox(engine: Engine): Promise<string> {
  const { image, context, isFilled } = await lookAtToolbox(engine);
  if (isFilled) return toolboxVolumeName(context.tag);
  if (image === null)
    throw new BrigError("the engine does not have the toolbox image of this version", {
      code: "image.missing",
      hint: "build it with: brig image build",
    });
  return await ensureToolboxVolume(engine, context.tag);
}

/** All that there is to ask at once: a sandbox's start waits for the answers. */
async function lookAtToolbox(
  engine: Engine,
): Promise<Pick<WantedImage, "image" | "context"> & { isFilled: boolean }> {
  const context = await readBuildContext(imageDefinitions.toolbox, engine.arch);
  const [image, isFilled] = await Promise.all([
    engine.inspectImage(context.tag),
    hasToolboxVolume(engine, context.tag),
  ]);
  return { context, image, isFilled };
}
