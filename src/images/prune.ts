import type { DiskUsage, Engine } from "../docker/engine-types.js";
import { isBrigError } from "../errors.js";
import { type ImageName, imageDefinitions } from "./definition.js";
import { imageLabel } from "./ensure.js";
import { look } from "./look.js";
import { toolboxLabel } from "./toolbox-volume.js";

export interface PruneReport {
  objects: PrunedObject[];
  /** What the removal of those without a use frees. Layers that images share are not counted, so it may be more. */
  bytes: number;
}

export interface PrunedObject {
  kind: "image" | "volume";
  /** The tags of an image. */
  names: string[];
  bytes: number;
  /** "refused": by the engine; another image may be built on it. */
  verdict: "unused" | "in-use" | "refused";
  /** Always false in a dry run. */
  removed: boolean;
}

/**
 * Removes images and toolbox volumes that brig made, this version does not use and no container, stopped ones included, uses. An
 * image built on one of brig's has its labels too: so the name must be brig's as well, and one without a name stays.
 */
export async function pruneImages(engine: Engine, { isDryRun }: { isDryRun: boolean }): Promise<PruneReport> {
  const current = await currentTags(engine);
  const usage = await engine.diskUsage();
  const stale = [...staleImages(usage, current), ...staleToolboxes(usage, current.get("toolbox") ?? "")];
  const objects: PrunedObject[] = [];
  for (const one of stale) objects.push(isDryRun ? judged(one) : await prune(engine, one));
  const unused = objects.filter(({ verdict }) => verdict === "unused");
  return { objects, bytes: unused.reduce((sum, one) => sum + one.bytes, 0) };
}

/** The tag that each image has in its present content, built or not. */
async function currentTags(engine: Engine): Promise<Map<string, string>> {
  const { arch } = await engine.info();
  const names = Object.keys(imageDefinitions) as ImageName[];
  const wanted = await Promise.all(names.map((name) => look(engine, { name, arch })));
  return new Map(wanted.map(({ name, context }) => [name, context.tag]));
}

interface Stale {
  kind: PrunedObject["kind"];
  names: string[];
  /** What to remove, in order; when one cannot be, the next ones stay. */
  steps: string[];
  bytes: number;
  isUsed: boolean;
}

function staleImages({ images }: DiskUsage, current: ReadonlyMap<string, string>): Stale[] {
  return images.flatMap(({ id, tags, labels, ownBytes, containers }): Stale[] => {
    const name = labels[imageLabel];
    if (name === undefined || tags.length === 0) return [];
    const definition = isImageName(name) ? imageDefinitions[name] : null;
    const repository = definition?.repository ?? `brig/${name}`;
    if (!tags.every((tag) => tag.startsWith(`${repository}:`))) return [];
    // A moving tag is what sandboxes are started from until the next build.
    const kept = [current.get(name), definition?.hasMovingTag ? `${repository}:latest` : undefined];
    if (tags.some((tag) => kept.includes(tag))) return [];
    // By its id an image goes only if nothing is built on it, and only while it has a single name.
    const steps = [...tags.slice(1), id];
    return [{ kind: "image", names: tags, steps, bytes: ownBytes, isUsed: containers !== 0 }];
  });
}

function isImageName(name: string): name is ImageName {
  return Object.hasOwn(imageDefinitions, name);
}

/** The volumes of one toolbox together, the one that holds the files first: its name is the beginning of the others'. */
function staleToolboxes({ volumes }: DiskUsage, toolboxTag: string): Stale[] {
  const current = toolboxTag.slice(toolboxTag.lastIndexOf(":") + 1);
  const hashes = new Set(volumes.map(({ labels }) => labels[toolboxLabel]));
  return [...hashes].flatMap((hash): Stale[] => {
    if (hash === undefined || hash === current) return [];
    const ofHash = volumes.filter(({ labels }) => labels[toolboxLabel] === hash);
    const names = ofHash.map(({ name }) => name).toSorted((a, b) => a.length - b.length);
    const bytes = ofHash.reduce((sum, one) => sum + one.ownBytes, 0);
    return [
      { kind: "volume", names, steps: names, bytes, isUsed: ofHash.some((one) => one.containers !== 0) },
    ];
  });
}

function judged({ kind, names, bytes, isUsed }: Stale): PrunedObject {
  return { kind, names, bytes, verdict: isUsed ? "in-use" : "unused", removed: false };
}

async function prune(engine: Engine, stale: Stale): Promise<PrunedObject> {
  const verdict = judged(stale);
  if (stale.isUsed) return verdict;
  try {
    for (const step of stale.steps)
      await (stale.kind === "image" ? engine.removeImage(step) : engine.removeVolume(step));
    return { ...verdict, removed: true };
  } catch (error) {
    // One refusal must not keep it from the others.
    if (isBrigError(error, "engine.failed")) return { ...verdict, verdict: "refused" };
    throw error;
  }
}
