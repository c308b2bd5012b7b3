import { BrigError } from "../../errors.js";
import { AnySignal } from "../../lib/time/any-signal.js";
import type { TarFile } from "../docker/calls/tar.js";
import type { Engine, PullProgress } from "../docker/engine-types.js";
import { completeFiles } from "./build-context.js";
import type { ImageDefinition, ImageName } from "./definition.js";
import { findImages, type WantedImage } from "./find-image.js";
import { withLock } from "./lock.js";
import { finishedLabels, unfinishedInstruction } from "./unfinished.js";

/** The label of every image that brig builds; its value is the image's short name. */
export const imageLabel = "brig.image";

export interface EnsureOptions<Name extends ImageName = ImageName> {
  names: readonly Name[];
  /** Called with each line of progress; it begins with the image that is being built or pulled. */
  onProgress?: PullProgress | undefined;
  signal?: AbortSignal | undefined;
  /** To which `$BRIG_HOME` what a build leaves belongs. Undefined for none. */
  brigHome?: string | undefined;
  /** Returns the name of the image on which all others are based. Default: Debian's, pulled if the engine has none. */
  provideParent?: typeof provideParent | undefined;
}

/**
 * Returns the images' tags by name, and builds missing images, all of them at once: much of a build is waiting for packages. Errors:
 * `image.build-failed`, or the engine's.
 */
export async function ensureImages<Name extends ImageName>(
  engine: Engine,
  options: EnsureOptions<Name>,
): Promise<Record<Name, string>> {
  const wanted = await findImages(engine, options.names);
  const failed = new AbortController();
  using ends = new AnySignal([options.signal, failed.signal]);
  const common = { ...options, signal: ends.signal };
  let parent: Promise<string> | null = null;
  let base: Promise<string> | null = null;
  const provide: Provide = (arch, { parent: below }) => {
    if (below !== undefined) {
      base ??= ensureImages(engine, { ...common, names: [below] }).then((tags) => tags[below]);
      return base;
    }
    const onProgress: PullProgress = (line, pulled) => options.onProgress?.(`debian: ${line}`, pulled);
    parent ??= (options.provideParent ?? provideParent)(engine, { arch, onProgress, signal: ends.signal });
    return parent;
  };
  const ensured = wanted.map(async (one) => {
    if (one.image === null) await buildOnce(engine, one, { ...common, provide });
    else await keepMovingTag(engine, one);
  });
  // No build goes on after this has failed.
  for (const one of ensured) one.catch((error: unknown) => failed.abort(error));
  const outcomes = await Promise.allSettled(ensured);
  options.signal?.throwIfAborted();
  if (outcomes.some(({ status }) => status === "rejected")) throw failed.signal.reason;
  return Object.fromEntries(wanted.map(({ name, context }) => [name, context.tag])) as Record<Name, string>;
}

/** The image that one is built on, for this architecture. */
type Provide = (arch: string, definition: ImageDefinition) => Promise<string>;

interface BuildOptions extends EnsureOptions {
  provide: Provide;
}

/** Which of these images the engine lacks in their current content. */
export async function missingImages<Name extends ImageName>(
  engine: Engine,
  names: readonly Name[],
): Promise<Name[]> {
  const wanted = await findImages(engine, names);
  return wanted.filter(({ image }) => image === null).map(({ name }) => name);
}

async function buildOnce(engine: Engine, wanted: WantedImage, options: BuildOptions): Promise<void> {
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
  { onProgress, signal, provide, brigHome }: BuildOptions,
): Promise<void> {
  if (context.packages.length > 0) onProgress?.("fetching packages from the npm registry");
  const [parent, files] = await Promise.all([provide(arch, definition), completeFiles(context, signal)]);
  // Only a build needs it.
  const { packTar } = await import("../docker/calls/tar.js");
  await engine.buildImage(
    packTar(brigHome === undefined ? files : files.map((file) => marked(file, brigHome))),
    {
      tag: context.tag,
      buildArgs: { PARENT: parent },
      labels: { [imageLabel]: definition.name, ...finishedLabels("brig.unfinished-image") },
      ...(onProgress === undefined ? {} : { onProgress }),
      ...(signal === undefined ? {} : { signal }),
    },
  );
  if (definition.hasMovingTag) await engine.tagImage(context.tag, `${definition.repository}:latest`);
}

/** The stages of a build, and one that fails, leave images to which the engine does not give the labels of the build. */
function marked(file: TarFile, brigHome: string): TarFile {
  if (file.path !== "Dockerfile") return file;
  const label = unfinishedInstruction("brig.unfinished-image", brigHome);
  return {
    ...file,
    content: Buffer.from(
      Buffer.from(file.content)
        .toString()
        .replace(/^FROM .*$/gm, `$&\n${label}`),
    ),
  };
}

async function keepMovingTag(engine: Engine, { context, definition, image }: WantedImage): Promise<void> {
  const moving = `${definition.repository}:latest`;
  if (!definition.hasMovingTag || image?.tags.includes(moving)) return;
  await engine.tagImage(context.tag, moving);
}

/** The parent of all images of brig. `ownDebian` is what the set-up of a checkout builds where no registry answers. */
const debian = "debian:bookworm-slim";
export const ownDebian = "brig/debian:bookworm-slim";

/** How long the registry may take to begin its answer, and how long it may stall later. */
const firstAnswerMs = 6_000;
const stallMs = 60_000;

export interface ParentOptions {
  /** The engine's: "amd64" or "arm64". */
  arch: string;
  onProgress?: PullProgress | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Returns the name of a Debian image. If the engine has none, it is pulled. Error: `image.build-failed` if that is not
 * possible.
 */
export async function provideParent(engine: Engine, options: ParentOptions): Promise<string> {
  for (const ref of [debian, ownDebian]) {
    if ((await engine.inspectImage(ref))?.arch === options.arch) return ref;
  }
  try {
    await pullDebian(engine, options);
    return debian;
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw new BrigError(`the engine does not have ${debian}, and no registry gives it`, {
      code: "image.build-failed",
      hint: `docker pull ${debian}, or without a registry: mmdebstrap --variant=minbase bookworm - | docker import - ${debian}`,
      cause,
    });
  }
}

async function pullDebian(engine: Engine, { onProgress, signal }: ParentOptions): Promise<void> {
  onProgress?.(`looking for ${debian} in the registry`);
  const stalled = new AbortController();
  using ends = new AnySignal([signal, stalled.signal]);
  let timer = setTimeout(() => stalled.abort(), firstAnswerMs);
  try {
    await engine.pullImage(debian, {
      signal: ends.signal,
      onProgress: (line, pulled) => {
        clearTimeout(timer);
        timer = setTimeout(() => stalled.abort(), stallMs);
        onProgress?.(line, pulled);
      },
    });
  } finally {
    clearTimeout(timer);
  }
}
