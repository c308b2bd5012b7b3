import { type Check, check } from "../docker/diagnosis/check.js";
import type { Engine } from "../docker/engine-types.js";
import { formatBytes } from "../lib/bytes.js";
import { look } from "./look.js";
import { findToolbox } from "./toolbox-volume.js";

/** Whether brig's images and the toolbox volume are there in their present content. */
export async function diagnoseImages(engine: Engine): Promise<Check[]> {
  const { arch } = await engine.info();
  const [base, toolbox] = await Promise.all([
    look(engine, { name: "base", arch }),
    look(engine, { name: "toolbox", arch }),
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
        : { status: "warn", advice: "the first session fills it; or now: brig image build toolbox" },
    ),
  ];
}
