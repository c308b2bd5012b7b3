import { lstat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import type { Engine } from "../docker/engine-types.js";
import type { ImageBuild } from "./dockerfile/build-plan.js";
import {
  ImageActivity,
  ImageBuilds,
  type ImageProgress,
  ImageReferences,
} from "./dockerfile/image-builds.js";

/** The image of a project, without the limit of time. */
export type ProjectBuild = Omit<ImageBuild, "timeoutSec">;

interface ProjectImageOptions {
  /** What a failed build leaves is marked as belonging to this `$BRIG_HOME`. */
  brigHome: string;
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: ImageProgress) => void) | undefined;
}

const LONGEST_BUILD_SECONDS = 3600;

/**
 * Builds the image, unless the engine has one of the same content, and returns its name. It is named anew each time, so that
 * nobody removes it before a container uses it. Errors: `image.build-failed`, `image.missing`, those of the engine.
 */
export async function provideProjectImage(
  engine: Engine,
  build: ProjectBuild,
  { brigHome, signal, onProgress }: ProjectImageOptions,
): Promise<string> {
  const activity = new ImageActivity(1, onProgress);
  const references = new ImageReferences({ engine, aliases: {}, isOffline: false, activity });
  const builds = new ImageBuilds({
    ...{ engine, references, activity, brigHome },
    builtFor: "project",
    isOffline: false,
    onBuilt: async () => undefined,
  });
  const task = join(build.context, build.dockerfile);
  using image = await builds.ready({ ...build, timeoutSec: LONGEST_BUILD_SECONDS }, { task, signal });
  return image.reference;
}

/** The build of a Dockerfile, or of the file of that name in a directory, with everything beside it. Error: `usage.invalid`. */
export async function buildOfDockerfile(path: string): Promise<ProjectBuild> {
  const facts = await lstat(path).catch(() => null);
  const buildArgs = {};
  if (facts?.isDirectory()) return { context: path, dockerfile: "Dockerfile", buildArgs };
  if (facts?.isFile()) return { context: dirname(path), dockerfile: basename(path), buildArgs };
  throw new BrigError(
    facts === null
      ? `there is no Dockerfile ${JSON.stringify(path)}`
      : `${JSON.stringify(path)} is neither a regular file nor a directory`,
    { code: "usage.invalid", hint: "name a Dockerfile, or a directory that has one; links are not followed" },
  );
}
