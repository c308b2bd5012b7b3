import type { Engine } from "../docker/engine-types.js";
import { completeFiles } from "./build-context.js";
import type { ImageName } from "./definition.js";
import { withLock } from "./lock.js";
import { look, type WantedImage } from "./look.js";
import { provideParent } from "./parent/parent.js";

/** Every image that brig builds carries it, with the image's short name as its value. */
export const imageLabel = "brig.image";

export interface EnsureOptions<Name extends ImageName = ImageName> {
  names: readonly Name[];
  /** One line of progress; the first word is the image that is being built. */
  onProgress?: ((line: string) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Whether a missing bootstrap program may be installed on this machine with apt. Default: no. */
  mayInstall?: boolean | undefined;
}

/**
 * The tags of these images, by name. Builds those that the engine lacks; costs one question per image when it has them.
 * Errors: `image.build-failed`, or what the engine said.
 */
export async function ensureImages<Name extends ImageName>(
  engine: Engine,
  options: EnsureOptions<Name>,
): Promise<Record<Name, string>> {
  const { arch } = await engine.info();
  const wanted = await Promise.all(options.names.map((name) => look(engine, { name, arch })));
  for (const one of wanted) {
    if (one.image === null) await buildOnce(engine, one, options);
    else await keepMovingTag(engine, one);
  }
  return Object.fromEntries(wanted.map(({ name, context }) => [name, context.tag])) as Record<Name, string>;
}

/** Those of these images that the engine lacks in their present content. */
export async function missingImages<Name extends ImageName>(
  engine: Engine,
  names: readonly Name[],
): Promise<Name[]> {
  const { arch } = await engine.info();
  const wanted = await Promise.all(names.map((name) => look(engine, { name, arch })));
  return wanted.filter(({ image }) => image === null).map(({ name }) => name);
}

async function buildOnce(engine: Engine, wanted: WantedImage, options: EnsureOptions): Promise<void> {
  const { tag } = wanted.context;
  const onProgress = (line: string) => options.onProgress?.(`${wanted.name}: ${line}`);
  await withLock(
    tag,
    async () => {
      if ((await engine.inspectImage(tag)) === null) await build(engine, wanted, { ...options, onProgress });
    },
    { onWait: () => onProgress("another process is building it"), signal: options.signal },
  );
}

async function build(
  engine: Engine,
  { context, definition, arch }: WantedImage,
  options: EnsureOptions,
): Promise<void> {
  const { onProgress, signal, mayInstall = false } = options;
  const parent = await provideParent(engine, { arch, onProgress, signal, mayInstall });
  if (context.packages.length > 0) onProgress?.("fetching what it needs from the npm registry");
  // Nobody but a build packs archives.
  const { packTar } = await import("../docker/calls/tar.js");
  await engine.buildImage(packTar(await completeFiles(context, signal)), {
    tag: context.tag,
    buildArgs: { PARENT: parent },
    labels: { [imageLabel]: definition.name },
    ...(onProgress === undefined ? {} : { onProgress }),
    ...(signal === undefined ? {} : { signal }),
  });
  if (definition.hasMovingTag) await engine.tagImage(context.tag, `${definition.repository}:latest`);
}

async function keepMovingTag(engine: Engine, { context, definition, image }: WantedImage): Promise<void> {
  const moving = `${definition.repository}:latest`;
  if (!definition.hasMovingTag || image?.tags.includes(moving)) return;
  await engine.tagImage(context.tag, moving);
}
