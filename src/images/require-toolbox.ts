import type { Engine } from "../docker/types.js";
import { BrigError } from "../errors.js";
import { look } from "./look.js";
import { ensureToolboxVolume } from "./toolbox-volume.js";

/** The volume with this version's runner and rg. Error: `image.missing` when its image was not built yet. */
export async function requireToolbox(engine: Engine): Promise<string> {
  const { arch } = await engine.info();
  const { image, context } = await look(engine, { name: "toolbox", arch });
  if (image === null)
    throw new BrigError("the engine does not have the toolbox image of this version", {
      code: "image.missing",
      hint: "build it with: brig image build",
    });
  return await ensureToolboxVolume(engine, context.tag);
}
