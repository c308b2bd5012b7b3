import { BrigError } from "../../errors.js";
import type { Engine, ImageSummary } from "../docker/engine-types.js";
import { type BuildContext, readBuildContext } from "./build-context.js";
import { compiledTags } from "./compiled-tags.js";
import { type ImageDefinition, type ImageName, imageDefinitions } from "./definition.js";

export interface WantedImage<Name extends ImageName = ImageName> {
  name: Name;
  arch: string;
  definition: ImageDefinition;
  context: BuildContext;
  image: ImageSummary | null;
}

export async function findImages<Name extends ImageName>(
  engine: Engine,
  names: readonly Name[],
): Promise<WantedImage<Name>[]> {
  const { arch } = await engine.info();
  return await Promise.all(names.map((name) => findImage(engine, { name, arch })));
}

/** `image` is the engine's image with the current content, or null. */
export async function findImage<Name extends ImageName>(
  engine: Engine,
  { name, arch }: { name: Name; arch: string },
): Promise<WantedImage<Name>> {
  const definition = imageDefinitions[name];
  const context = await readBuildContext(definition, arch);
  if (name === "toolbox") requireCompiled(context.tag, arch);
  return { name, arch, definition, context, image: await engine.inspectImage(context.tag) };
}

/** A sandbox would still use the toolbox that this program was compiled for. */
function requireCompiled(tag: string, arch: string): void {
  if ((compiledTags[arch] ?? tag) === tag) return;
  throw new BrigError(
    `the files in images/toolbox have changed since brig was compiled; they now make ${tag}`,
    {
      code: "image.missing",
      hint: "compile brig again: npm run build",
    },
  );
}
