import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { BrigError } from "../../../errors.js";
import { errnoOf } from "../../../lib/errno.js";
import type { Engine, TarEntry } from "../../../sandbox/index.js";
import { compareVersions, streamTar } from "../../../sandbox/index.js";
import {
  type BuildKitFeature,
  isPlatformOf,
  parseDockerfile,
  platformValues,
  replaceBases,
} from "../../tasks/dockerfile.js";
import {
  forOlderBuilders,
  type OlderDockerfile,
  withoutSyntax,
} from "../../tasks/dockerfile-for-older-builders.js";
import type { Task, TaskImage } from "../../tasks/task.js";
import { type ContextEntry, type ContextLimits, defaultContextLimits, walkContext } from "./build-context.js";
import { taskImageRepository } from "./task-image-store.js";

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

/** The features of this image's Dockerfile that the engine lacks. Before Docker 23, and in Podman, these are the recent ones. */
async function lackingFeatures(
  features: readonly BuildKitFeature[],
  engine: BuildingEngine,
): Promise<BuildKitFeature[]> {
  const recent = features.filter(({ isRecent }) => isRecent);
  return recent.length > 0 && (await isOlderBuilder(engine)) ? recent : [];
}

/** What the way to build depends on. */
export type BuildingEngine = Pick<Engine, "arch" | "info">;

/** The API version of Docker 23, whose BuildKit is the first that has heredocs. */
const heredocsApi = "1.42";

async function isOlderBuilder({ info }: BuildingEngine): Promise<boolean> {
  const { product, apiVersion } = await info();
  return product !== "docker" || compareVersions(apiVersion, heredocsApi) < 0;
}

interface PlanOptions {
  engine: BuildingEngine;
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
  const { engine } = options;
  // With this argument a task could have BuildKit fetch and run another builder.
  const { BUILDKIT_SYNTAX: _, ...given } = image.buildArgs;
  const buildArgs = { ...platformValues(platformArguments, engine.arch), ...given };

  const found = new Map<string, { reference: string; id: string }>();
  for (const { reference } of bases)
    if (!found.has(reference)) found.set(reference, await options.baseOf(reference));
  const renamed = replaceBases(text, bases, (reference) => found.get(reference)?.reference ?? reference);
  const readable =
    buildKitFeatures.length > 0
      ? await forBuildKitOf(engine, renamed, entries)
      : { text: renamed, files: new Map<string, never>() };
  const replaced = new Map<string, Buffer>(
    readable.text === text ? [] : [[dockerfile, Buffer.from(readable.text)]],
  );
  for (const [path, { content, mode }] of readable.files) {
    entries.push({ kind: "file", path, mode, sizeBytes: content.length });
    replaced.set(path, content);
  }
  const baseIds = [...found.values()].map(({ id }) => id);

  const files: ContextFiles = { directory, entries, replaced };
  const contentHash = await hashContext(files, options.signal);
  const settings = [scheme, engine.arch, dockerfile, Object.entries(buildArgs).toSorted(), baseIds];
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

/** The Dockerfile as the engine's own BuildKit reads it. */
async function forBuildKitOf(
  engine: BuildingEngine,
  dockerfile: string,
  context: readonly ContextEntry[],
): Promise<OlderDockerfile> {
  const text = withoutSyntax(dockerfile);
  if (!(await isOlderBuilder(engine))) return { text, files: new Map() };
  return forOlderBuilders(
    text,
    context.map(({ path }) => path),
  );
}

/** The images outside of its Dockerfile that it is built from. */
export async function basesOf({ context, dockerfile, buildArgs }: BuiltImage): Promise<string[]> {
  await walkContext({ directory: context, dockerfile }, defaultContextLimits);
  const text = await readFile(join(context, dockerfile), "utf8");
  return [...new Set(parseDockerfile(text, buildArgs).bases.map(({ reference }) => reference))];
}

/** Number of faults named in the message. */
const shownFaults = 20;

/**
 * Reads the Dockerfiles of all images. Error: `image.build-failed` that names everything in them that the engine cannot
 * build, before anything is built.
 */
export async function refuseUnbuildable(
  wanted: readonly WantedImage[],
  engine: BuildingEngine,
): Promise<void> {
  const faults: string[] = [];
  for (const { task, image } of wanted)
    if (image.kind === "build")
      for (const fault of await faultsOf(image, engine)) faults.push(`${task}: ${fault}`);
  if (faults.length === 0) return;
  const more = faults.length > shownFaults ? [`and ${faults.length - shownFaults} more`] : [];
  const lines = [...faults.slice(0, shownFaults), ...more].map((line) => `  ${line}`);
  throw new BrigError(["the images of these tasks cannot be built:", ...lines].join("\n"), {
    code: "image.build-failed",
    hint: "change these lines, build the images elsewhere and name them as docker_image, or leave the tasks out with --exclude",
  });
}

async function faultsOf(
  { context, dockerfile, buildArgs }: BuiltImage,
  engine: BuildingEngine,
): Promise<string[]> {
  const { arch } = engine;
  const text = await readFile(join(context, dockerfile), "utf8");
  const { buildKitFeatures, platforms } = parseDockerfile(text, buildArgs);
  return [
    ...(await lackingFeatures(buildKitFeatures, engine)).map(
      ({ line, name }) => `${dockerfile}:${line}: ${name} needs Docker 23 or newer`,
    ),
    ...platforms
      .filter(({ platform }) => !isPlatformOf(platform, arch))
      .map(
        ({ line, platform }) =>
          `${dockerfile}:${line}: it is for ${platform}, and the engine is linux/${arch}`,
      ),
  ];
}

export interface WantedImage {
  /** The first task that needs it. */
  task: string;
  image: TaskImage;
}

/** The images of these tasks and of their verifiers, each once. */
export function wantedImages(tasks: readonly Task[]): WantedImage[] {
  const wanted = new Map<string, WantedImage>();
  for (const task of tasks) {
    const ofVerifiers = task.steps.flatMap(({ verifier }) => verifier.environment?.image ?? []);
    for (const image of [task.environment.image, ...ofVerifiers]) {
      const key = JSON.stringify(image);
      if (!wanted.has(key)) wanted.set(key, { task: task.name, image });
    }
  }
  return [...wanted.values()];
}

/** The files of a context, and contents that take the place of those on disk, by path. */
export interface ContextFiles {
  directory: string;
  entries: readonly ContextEntry[];
  replaced: ReadonlyMap<string, Buffer>;
}

const pieceBytes = 256 * 1024;

/** Adds paths, modes and contents to the hash, so that no two different contexts give it the same bytes. */
export async function hashContext(files: ContextFiles, signal?: AbortSignal): Promise<Hash> {
  const hash = createHash("sha256");
  for (const entry of files.entries) {
    const detail = entry.kind === "file" ? lengthOf(files, entry) : entry.kind === "link" ? entry.target : "";
    hash.update(JSON.stringify([entry.kind, entry.path, entry.mode, detail]));
    if (entry.kind !== "file") continue;
    for await (const piece of contentOf(files, entry)) {
      signal?.throwIfAborted();
      hash.update(piece);
    }
  }
  return hash;
}

/** A tar stream without owners and times. At no time are more than a few pieces of a file in memory. */
export function packContext(files: ContextFiles): Readable {
  return streamTar(tarEntries(files));
}

function* tarEntries(files: ContextFiles): Iterable<TarEntry> {
  for (const entry of files.entries) {
    if (entry.kind !== "file") yield entry;
    else yield { ...entry, sizeBytes: lengthOf(files, entry), content: () => contentOf(files, entry) };
  }
}

type FileEntry = Extract<ContextEntry, { kind: "file" }>;

function lengthOf({ replaced }: ContextFiles, { path, sizeBytes }: FileEntry): number {
  return replaced.get(path)?.length ?? sizeBytes;
}

async function* contentOf(files: ContextFiles, { path, sizeBytes }: FileEntry): AsyncIterable<Uint8Array> {
  const given = files.replaced.get(path);
  if (given !== undefined) return yield given;
  const absolute = join(files.directory, path);
  const file = await openFile(absolute);
  try {
    let left = sizeBytes;
    while (true) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(pieceBytes, left + 1)));
      if (bytesRead > left || (bytesRead === 0 && left > 0)) throw changed(absolute);
      if (bytesRead === 0) return;
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** Neither follows a link nor waits for the writer of a FIFO that has taken the file's place. */
async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    throw new BrigError(`${path} cannot be read: ${errnoOf(cause) ?? "unknown error"}`, {
      code: "image.build-failed",
      hint: "give it to the user who runs brig, or leave it out with a .dockerignore file",
      cause,
    });
  }
}

function changed(path: string): BrigError {
  return new BrigError(`${path} changed while an image was built from it`, {
    code: "image.build-failed",
    hint: "run it again when nothing writes to the build context",
  });
}
