import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { BrigError } from "../../../errors.js";
import { readFileStart } from "../../../lib/bounded-file.js";
import { formatBytes } from "../../../lib/bytes.js";
import { errnoOf } from "../../../lib/errno.js";
import { compareVersions } from "../../docker/api-version.js";
import { streamTar, type TarEntry } from "../../docker/calls/tar.js";
import type { Engine } from "../../docker/engine-types.js";
import { type BuiltFor, repositoryOf } from "./built-for.js";
import { type ContextEntry, type ContextLimits, defaultContextLimits, walkContext } from "./context-files.js";
import {
  type BuildKitFeature,
  isPlatformOf,
  parseDockerfile,
  platformValues,
  replaceBases,
} from "./dockerfile.js";
import { forOlderBuilders, type OlderDockerfile, withoutSyntax } from "./dockerfile-for-older-builders.js";

/** An image to build from a Dockerfile. */
export interface ImageBuild {
  /** Absolute path of the build context. */
  context: string;
  /** Relative to the context. */
  dockerfile: string;
  buildArgs: Readonly<Record<string, string>>;
  /** The stage that is the result. Default: the last one. */
  target?: string | undefined;
  timeoutSec: number;
}

/** A build whose result is known by name before it is made. */
export interface BuildPlan {
  tag: string;
  hash: string;
  files: ContextFiles;
  dockerfile: string;
  buildArgs: Readonly<Record<string, string>>;
  target: string | undefined;
  /** The number of steps that a build has at most. */
  steps: number;
  baseIds: readonly string[];
  buildKitFeatures: readonly BuildKitFeature[];
  /** The classic builder builds images of tasks that do not need BuildKit, as it always has: others would have other layers. */
  usesBuildKit: boolean;
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
  builtFor: BuiltFor;
  limits?: ContextLimits | undefined;
  /** Gives the name to build from, and its id. */
  baseOf: (reference: string) => Promise<{ reference: string; id: string }>;
  signal?: AbortSignal | undefined;
}

/** Changes when the same inputs are to give another image. */
const scheme = 1;

/** Error: `image.build-failed` for a context that cannot be sent, and those of `baseOf`. */
export async function planBuild(image: ImageBuild, options: PlanOptions): Promise<BuildPlan> {
  const { context: directory, dockerfile } = image;
  const entries = await walkContext({ directory, dockerfile }, options.limits ?? defaultContextLimits);
  const text = await readDockerfile(directory, dockerfile);
  const { bases, buildKitFeatures, platformArguments, steps } = parseDockerfile(text, image.buildArgs);
  const { engine } = options;
  // With this argument a task could have BuildKit fetch and run another builder.
  const { BUILDKIT_SYNTAX: _, ...given } = image.buildArgs;
  const buildArgs = { ...platformValues(platformArguments, engine.arch), ...given };

  const found = new Map<string, { reference: string; id: string }>();
  for (const { reference } of bases)
    if (!found.has(reference)) found.set(reference, await options.baseOf(reference));
  const renamed = replaceBases(text, bases, (reference) => found.get(reference)?.reference ?? reference);
  const usesBuildKit = options.builtFor === "project" || buildKitFeatures.length > 0;
  const readable = usesBuildKit
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
  if (image.target !== undefined) settings.push(image.target);
  const hash = contentHash.update(JSON.stringify(settings)).digest("hex").slice(0, 32);
  return {
    tag: `${repositoryOf[options.builtFor]}:${hash}`,
    hash,
    files,
    dockerfile,
    buildArgs,
    target: image.target,
    steps,
    baseIds,
    buildKitFeatures,
    usesBuildKit,
  };
}

/** A longer Dockerfile is none: everything that reads it would take long. */
const maxDockerfileBytes = 4 * 1024 * 1024;

/** Bytes that are no UTF-8 are kept out of what is read, not out of what is built. */
async function readDockerfile(directory: string, dockerfile: string): Promise<string> {
  const path = join(directory, dockerfile);
  const start = await readFileStart(path, maxDockerfileBytes);
  if (start.kind === "read" && !start.isLonger) return start.bytes.toString("utf8");
  const words =
    start.kind === "read"
      ? `is longer than ${formatBytes(maxDockerfileBytes)}`
      : start.kind === "missing"
        ? "does not exist"
        : start.reason;
  throw new BrigError(`the Dockerfile ${path} ${words}`, {
    code: "image.build-failed",
    hint: "name another file",
  });
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
export async function basesOf({ context, dockerfile, buildArgs }: ImageBuild): Promise<string[]> {
  await walkContext({ directory: context, dockerfile }, defaultContextLimits);
  const text = await readDockerfile(context, dockerfile);
  return [...new Set(parseDockerfile(text, buildArgs).bases.map(({ reference }) => reference))];
}

/** Everything in the Dockerfile that the engine cannot build. */
export async function faultsOf(
  { context, dockerfile, buildArgs }: ImageBuild,
  engine: BuildingEngine,
): Promise<string[]> {
  const { arch } = engine;
  const text = await readDockerfile(context, dockerfile);
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

/** The features of this image's Dockerfile that the engine lacks. Before Docker 23, and in Podman, these are the recent ones. */
async function lackingFeatures(
  features: readonly BuildKitFeature[],
  engine: BuildingEngine,
): Promise<BuildKitFeature[]> {
  const recent = features.filter(({ isRecent }) => isRecent);
  return recent.length > 0 && (await isOlderBuilder(engine)) ? recent : [];
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
