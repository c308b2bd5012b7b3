import type { Engine, ImageSummary } from "../docker/engine-types.js";
import { BrigError } from "../errors.js";
import { type BuildContext, readBuildContext } from "./build-context.js";
import { compiledTags } from "./compiled-tags.js";
import { type ImageDefinition, type ImageName, imageDefinitions } from "./definition.js";

/** An image as it should be, and as the engine has it. */
export interface WantedImage<Name extends ImageName = ImageName> {
  name: Name;
  arch: string;
  definition: ImageDefinition;
  context: BuildContext;
  image: ImageSummary | null;
}

/** Looks whether the engine has an image in its present content. */
export async function look<Name extends ImageName>(
  engine: Engine,
  { name, arch }: { name: Name; arch: string },
): Promise<WantedImage<Name>> {
  const definition = imageDefinitions[name];
  const context = await readBuildContext(definition, arch);
  if (name === "toolbox") requireCompiled(context.tag, arch);
  return { name, arch, definition, context, image: await engine.inspectImage(context.tag) };
}

/** Sandboxes would go on with the toolbox that this program was compiled for. */
function requireCompiled(tag: string, arch: string): void {
  if ((compiledTags[arch] ?? tag) === tag) return;
  throw new BrigError(`the files of images/toolbox have changed since brig was compiled: they make ${tag}`, {
    code: "image.missing",
    hint: "compile it again: npm run build",
  });
}
