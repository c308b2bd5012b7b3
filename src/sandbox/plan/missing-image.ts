import { BrigError } from "../../errors.js";
import type { Engine, ImageSummary } from "../docker/engine-types.js";
import { repositoryOf } from "../images/dockerfile/built-for.js";

export const DEFAULT_IMAGE = "brig/base";

/** Error: `image.missing`. */
export async function requireImage(engine: Engine, ref: string): Promise<ImageSummary> {
  const image = await engine.inspectImage(ref);
  if (image) return image;
  throw missingImage(ref);
}

export function missingImage(ref: string): BrigError {
  const [, own] = /^brig\/(base|node|python|go|rust)(?::|$)/.exec(ref) ?? [];
  return new BrigError(`the engine has no image ${JSON.stringify(ref)}`, {
    code: "image.missing",
    hint:
      own !== undefined
        ? `build it with: brig image build${own === "base" ? "" : ` ${own}`}`
        : ref.startsWith(`${repositoryOf.project}:`)
          ? "it was built from a Dockerfile: name that again with --dockerfile or --devcontainer"
          : `get it with: docker pull ${ref}`,
  });
}
