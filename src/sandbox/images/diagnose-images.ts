import { formatBytes } from "../../lib/bytes.js";
import { type Check, check } from "../docker/diagnosis/check.js";
import type { Engine } from "../docker/engine-types.js";
import { findImage } from "./find-image.js";
import { findToolbox } from "./toolbox-volume.js";

/** Checks whether the engine has brig's images and the toolbox volume with their current content. */
export async function diagnoseImages(engine: Engine): Promise<Check[]> {
  const { arch } = await engine.info();
  const [base, toolbox] = await Promise.all([
    findImage(engine, { name: "base", arch }),
    findImage(engine, { name: "toolbox", arch }),
  ]);
  const hasVolume = (await findToolbox(engine, toolbox.context.tag)) !== null;
  return [
    ...[base, toolbox].map(({ name, context, image }) =>
      check(
        {
          id: `image-${name}`,
          title: `${name} image`,
          found:
            image === null ? `${context.tag} is missing` : `${context.tag}, ${formatBytes(image.sizeBytes)}`,
        },
        image === null ? { status: "warn", advice: `build it: brig image build ${name}` } : undefined,
      ),
    ),
    check(
      { id: "toolbox-volume", title: "toolbox volume", found: hasVolume ? "filled" : "not filled yet" },
      hasVolume
        ? undefined
        : { status: "warn", advice: "the first session fills it; to do it now: brig image build toolbox" },
    ),
  ];
}
