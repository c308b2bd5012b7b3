import { isBrigError } from "../../../../errors.js";
import { readCurrentProcess } from "../../../../lib/file-lock.js";
import type { Engine, ImageSummary } from "../../../../sandbox/index.js";
import { withLock } from "../../../../sandbox/index.js";
import { isHeld } from "../image-holds.js";
import { taskImageLabels, taskImageRepository } from "../labels.js";
import { DiskShare, type StoredLayer, storedLayers } from "./stored-layers.js";

/** An image that brig built for a task. */
export interface StoredTaskImage {
  id: string;
  tag: string;
  /** The task for which it was built first; empty if nobody said. */
  task: string;
  sizeBytes: number;
  createdAt: Date;
  lastUsedAt: Date;
}

interface RemovedTaskImage extends StoredTaskImage {
  /** Size without the layers that other images still have. */
  freedBytes: number;
}

export interface TidyOptions {
  budgetBytes: number;
  /** Images that were used after this time stay: another user may be about to start a container. */
  usedBefore: Date;
  isDryRun?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

export interface TidyReport {
  removed: RemovedTaskImage[];
  /** Number of images that stay. */
  kept: number;
  /** Size of the images before and after, without what they share with images that brig did not build. */
  bytesBefore: number;
  bytesAfter: number;
}

/** The images of tasks on an engine, whoever of its users built them. */
export class TaskImageStore {
  readonly #engine: Engine;
  /** An image's layers never change. */
  readonly #layers = new Map<string, readonly StoredLayer[]>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** The least recently used images come first. */
  async list(): Promise<StoredTaskImage[]> {
    const images = await this.#engine.listImages([taskImageLabels.hash]);
    return images.flatMap(asTaskImage).toSorted((a, b) => a.lastUsedAt.getTime() - b.lastUsedAt.getTime());
  }

  /**
   * Removes images until the rest are within the budget. Images that a container uses, that other images are built on, or
   * that a run of this user needs at the moment stay.
   */
  async tidy(options: TidyOptions): Promise<TidyReport> {
    const run = async () => await this.#tidy(options);
    return await withLock("task-image-janitor", run, { signal: options.signal });
  }

  async #tidy({ budgetBytes, usedBefore, isDryRun = false, signal }: TidyOptions): Promise<TidyReport> {
    const images = await this.list();
    const share = new DiskShare(await this.#foreignLayers());
    for (const { id } of images) share.add(await this.#layersOf(id));
    const bytesBefore = share.bytes;
    const removed: RemovedTaskImage[] = [];
    for (const image of images) {
      signal?.throwIfAborted();
      if (share.bytes <= budgetBytes) break;
      if (image.lastUsedAt >= usedBefore) continue;
      if (!(await this.#remove(image, isDryRun))) continue;
      const before = share.bytes;
      share.remove(await this.#layersOf(image.id));
      removed.push({ ...image, freedBytes: before - share.bytes });
    }
    return { removed, kept: images.length - removed.length, bytesBefore, bytesAfter: share.bytes };
  }

  /** False if it stays. While the lock is held nobody can begin to use it. */
  async #remove({ tag, id }: StoredTaskImage, isDryRun: boolean): Promise<boolean> {
    const { processes } = await readCurrentProcess();
    return await withLock(tag, async () => {
      if (await isHeld(tag, processes)) return false;
      // The image may have been built anew since it was listed.
      if ((await this.#engine.inspectImage(tag))?.id !== id) return false;
      if (isDryRun) return true;
      try {
        await this.#engine.removeImage(tag);
        return true;
      } catch (error) {
        // The engine refuses for images in use.
        if (isBrigError(error, "engine.failed")) return false;
        throw error;
      }
    });
  }

  /** The layers of what the images are built on, as long as the engine has that under another name. */
  async #foreignLayers(): Promise<Set<string>> {
    const images = await this.#engine.listImages([taskImageLabels.hash]);
    const bases = new Set(images.flatMap(({ labels }) => (labels[taskImageLabels.bases] ?? "").split(" ")));
    const ours = new Set(images.flatMap(asTaskImage).map(({ id }) => id));
    const keys = new Set<string>();
    for (const id of bases) {
      if (!/^sha256:[0-9a-f]{64}$/.test(id) || ours.has(id)) continue;
      const base = await this.#engine.inspectImage(id);
      if (base === null || base.tags.length === 0) continue;
      for (const { key } of await this.#layersOf(id)) keys.add(key);
    }
    return keys;
  }

  async #layersOf(id: string): Promise<readonly StoredLayer[]> {
    const known = this.#layers.get(id) ?? storedLayers(await this.#engine.imageHistory(id));
    this.#layers.set(id, known);
    return known;
  }
}

/** An image that was built on one of brig's inherits its label, but does not have the name of its own hash. */
function asTaskImage({
  id,
  tags,
  labels,
  sizeBytes,
  createdAt,
  lastTaggedAt,
}: ImageSummary): StoredTaskImage[] {
  const tag = `${taskImageRepository}:${labels[taskImageLabels.hash]}`;
  if (!tags.includes(tag)) return [];
  const task = labels[taskImageLabels.task] ?? "";
  return [{ id, tag, task, sizeBytes, createdAt, lastUsedAt: lastTaggedAt ?? createdAt }];
}
