import { BrigError } from "../../errors.js";
import type { Engine, ImageSummary } from "../docker/engine-types.js";

export const DEFAULT_IMAGE = "brig/base";

/** Error: `image.missing`. */
export async function requireImage(engine: Engine, ref: string): Promise<ImageSummary> {
  const image = await engine.inspectImage(ref);
  if (image) return image;
  throw missingImage(ref);
}

export function missingImage(ref: string): BrigError {
  const isOurs = ref === DEFAULT_IMAGE || ref.startsWith(`${DEFAULT_IMAGE}:`);
  return new BrigError(`the engine has no image ${JSON.stringify(ref)}`, {
    code: "image.missing",
    hint: isOurs ? "build it with: brig image build" : `get it with: docker pull ${ref}`,
  });
}
