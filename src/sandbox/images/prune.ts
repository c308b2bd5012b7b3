import { isBrigError } from "../../errors.js";
import type { DiskUsage, Engine } from "../docker/engine-types.js";
import { type ImageName, imageDefinitions } from "./definition.js";
import { imageLabel } from "./ensure.js";
import { findImages } from "./find-image.js";
import { toolboxLabel } from "./toolbox-volume.js";

export interface PruneReport {
  objects: PrunedObject[];
  /** The size of the unused objects, without layers that images share. */
  bytes: number;
}

export interface PrunedObject {
  kind: "image" | "volume";
  /** The tags of an image, or the names of a toolbox's volumes. */
  names: string[];
  bytes: number;
  /** "refused" by the engine, e.g. because another image is based on it. */
  verdict: "unused" | "in-use" | "refused";
  removed: boolean;
}

/**
 * Removes images and toolbox volumes of other versions of brig that no container uses, not even a stopped
 * one. An image based on one of brig's inherits its labels, so it must also have one of brig's names.
 */
export async function pruneImages(engine: Engine, { isDryRun }: { isDryRun: boolean }): Promise<PruneReport> {
  const current = await currentTags(engine);
  const usage = await engine.diskUsage();
  const stale = [...staleImages(usage, current), ...staleToolboxes(usage, current.get("toolbox") ?? "")];
  const objects: PrunedObject[] = [];
  for (const one of stale) objects.push(isDryRun ? reportOf(one) : await prune(engine, one));
  const unused = objects.filter(({ verdict }) => verdict === "unused");
  return { objects, bytes: unused.reduce((sum, one) => sum + one.bytes, 0) };
}

async function currentTags(engine: Engine): Promise<Map<string, string>> {
  const wanted = await findImages(engine, Object.keys(imageDefinitions) as ImageName[]);
  return new Map(wanted.map(({ name, context }) => [name, context.tag]));
}

interface Stale {
  kind: PrunedObject["kind"];
  names: string[];
  /** Removed in this order. If one cannot be removed, the rest stay. */
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
    // Sandboxes are started from the moving tag until the next build.
    const kept = [current.get(name), definition?.hasMovingTag ? `${repository}:latest` : undefined];
    if (tags.some((tag) => kept.includes(tag))) return [];
    // By id the engine refuses to remove an image that is the base of another or has several names.
    const steps = [...tags.slice(1), id];
    return [{ kind: "image", names: tags, steps, bytes: ownBytes, isUsed: containers !== 0 }];
  });
}

function isImageName(name: string): name is ImageName {
  return Object.hasOwn(imageDefinitions, name);
}

/** The volumes of a toolbox belong together. The one with the files comes first: its name is the shortest. */
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

function reportOf({ kind, names, bytes, isUsed }: Stale): PrunedObject {
  return { kind, names, bytes, verdict: isUsed ? "in-use" : "unused", removed: false };
}

async function prune(engine: Engine, stale: Stale): Promise<PrunedObject> {
  const verdict = reportOf(stale);
  if (stale.isUsed) return verdict;
  try {
    for (const step of stale.steps)
      await (stale.kind === "image" ? engine.removeImage(step) : engine.removeVolume(step));
    return { ...verdict, removed: true };
  } catch (error) {
    if (isBrigError(error, "engine.failed")) return { ...verdict, verdict: "refused" };
    throw error;
  }
}
