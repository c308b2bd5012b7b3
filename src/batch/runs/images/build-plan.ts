import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BuildKitFeature } from "../../tasks/dockerfile/build-kit-features.js";
import { parseDockerfile, replaceBases } from "../../tasks/dockerfile/parse-dockerfile.js";
import { platformValues } from "../../tasks/dockerfile/platforms.js";
import type { TaskImage } from "../../tasks/task.js";
import { type ContextFiles, hashContext } from "./context/context-files.js";
import { type ContextLimits, defaultContextLimits, walkContext } from "./context/walk-context.js";
import { taskImageRepository } from "./labels.js";

export type BuiltImage = Extract<TaskImage, { kind: "build" }>;

/** A build whose result is known by name before it is made. */
export interface BuildPlan {
  tag: string;
  hash: string;
  files: ContextFiles;
  dockerfile: string;
  buildArgs: Readonly<Record<string, string>>;
  baseIds: readonly string[];
  buildKitFeatures: readonly BuildKitFeature[];
}

interface PlanOptions {
  arch: string;
  limits?: ContextLimits | undefined;
  /** Gives the name to build from, and its id. */
  baseOf: (reference: string) => Promise<{ reference: string; id: string }>;
  signal?: AbortSignal | undefined;
}

/** Changes when the same inputs are to give another image. */
const scheme = 1;

/** Error: `image.build-failed` for a context that cannot be sent, and those of `baseOf`. */
export async function planBuild(image: BuiltImage, options: PlanOptions): Promise<BuildPlan> {
  const { context: directory, dockerfile } = image;
  const entries = await walkContext({ directory, dockerfile }, options.limits ?? defaultContextLimits);
  const text = await readFile(join(directory, dockerfile), "utf8");
  const { bases, buildKitFeatures, platformArguments } = parseDockerfile(text, image.buildArgs);
  const buildArgs = { ...platformValues(platformArguments, options.arch), ...image.buildArgs };

  const found = new Map<string, { reference: string; id: string }>();
  for (const { reference } of bases)
    if (!found.has(reference)) found.set(reference, await options.baseOf(reference));
  const renamed = replaceBases(text, bases, (reference) => found.get(reference)?.reference ?? reference);
  const replaced = new Map(renamed === text ? [] : [[dockerfile, Buffer.from(renamed)] as const]);
  const baseIds = [...found.values()].map(({ id }) => id);

  const files: ContextFiles = { directory, entries, replaced };
  const contentHash = await hashContext(files, options.signal);
  const settings = [scheme, options.arch, dockerfile, Object.entries(buildArgs).toSorted(), baseIds];
  const hash = contentHash.update(JSON.stringify(settings)).digest("hex").slice(0, 32);
  return {
    tag: `${taskImageRepository}:${hash}`,
    hash,
    files,
    dockerfile,
    buildArgs,
    baseIds,
    buildKitFeatures,
  };
}

/** The images outside of its Dockerfile that it is built from. */
export async function basesOf({ context, dockerfile, buildArgs }: BuiltImage): Promise<string[]> {
  await walkContext({ directory: context, dockerfile }, defaultContextLimits);
  const text = await readFile(join(context, dockerfile), "utf8");
  return [...new Set(parseDockerfile(text, buildArgs).bases.map(({ reference }) => reference))];
}
