import { createHash } from "node:crypto";
import { join } from "node:path";
import { isBrigError } from "../../../errors.js";
import { createLock, type FileLock, holderOf, readCurrentProcess } from "../../../lib/file-lock.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import type { HostProcesses } from "../../../lib/owner.js";
import type { Engine, ImageLayer, ImageSummary } from "../../docker/engine-types.js";
import { lockDirectory, withLock } from "../lock.js";
import { type BuiltFor, repositoryOf } from "./built-for.js";

/** An image that brig built from a Dockerfile. */
export interface StoredImage {
  id: string;
  tag: string;
  builtFor: BuiltFor;
  /** The task for which it was built first, or the project's Dockerfile; empty if nobody said. */
  task: string;
  sizeBytes: number;
  createdAt: Date;
  lastUsedAt: Date;
}

interface RemovedImage extends StoredImage {
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
  removed: RemovedImage[];
  /** Number of images that stay. */
  kept: number;
  /** Size of the images before and after, without what they share with images that brig did not build. */
  bytesBefore: number;
  bytesAfter: number;
}

/** The images on an engine that were built from Dockerfiles, whoever of its users built them. */
export class BuiltImageStore {
  readonly #engine: Engine;
  /** An image's layers never change. */
  readonly #layers = new Map<string, readonly StoredLayer[]>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** The least recently used images come first. */
  async list(): Promise<StoredImage[]> {
    const images = await this.#engine.listImages([builtImageLabels.hash]);
    return images.flatMap(asStoredImage).toSorted((a, b) => a.lastUsedAt.getTime() - b.lastUsedAt.getTime());
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
    const removed: RemovedImage[] = [];
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
  async #remove({ tag, id }: StoredImage, isDryRun: boolean): Promise<boolean> {
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
    const images = await this.#engine.listImages([builtImageLabels.hash]);
    const bases = new Set(images.flatMap(({ labels }) => (labels[builtImageLabels.bases] ?? "").split(" ")));
    const ours = new Set(images.flatMap(asStoredImage).map(({ id }) => id));
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
function asStoredImage({
  id,
  tags,
  labels,
  sizeBytes,
  createdAt,
  lastTaggedAt,
}: ImageSummary): StoredImage[] {
  const hash = labels[builtImageLabels.hash];
  const [builtFor, tag] = namesOf(hash).find(([, name]) => tags.includes(name)) ?? [];
  if (builtFor === undefined || tag === undefined) return [];
  const task = labels[builtImageLabels.task] ?? "";
  return [{ id, tag, builtFor, task, sizeBytes, createdAt, lastUsedAt: lastTaggedAt ?? createdAt }];
}

function namesOf(hash: string | undefined): [BuiltFor, string][] {
  return (["task", "project"] as const).map((one) => [one, `${repositoryOf[one]}:${hash}`]);
}

/** A layer on the disk. Images that were built on the same one share it, and its key. */
interface StoredLayer {
  key: string;
  bytes: number;
}

/**
 * The layers of an image, from its history. Engines give no ids for the layers of images that they pulled, so a layer is
 * known by how it and all below it came about.
 */
export function storedLayers(history: readonly ImageLayer[]): StoredLayer[] {
  let key = "";
  return history.toReversed().map(({ createdAt, createdBy, bytes }) => {
    const own = JSON.stringify([key, createdAt, createdBy, bytes]);
    key = createHash("sha256").update(own).digest("base64");
    return { key, bytes };
  });
}

/** The disk space of several images, each layer counted once. */
export class DiskShare {
  readonly #excluded: ReadonlySet<string>;
  readonly #users = new Map<string, number>();
  #bytes = 0;

  /** Layers with these keys stay, whatever is removed, and do not count. */
  constructor(excluded: ReadonlySet<string>) {
    this.#excluded = excluded;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(layers: readonly StoredLayer[]): void {
    for (const { key, bytes } of layers) {
      if (this.#excluded.has(key)) continue;
      const users = this.#users.get(key) ?? 0;
      if (users === 0) this.#bytes += bytes;
      this.#users.set(key, users + 1);
    }
  }

  /** Removes what was added before. */
  remove(layers: readonly StoredLayer[]): void {
    for (const { key, bytes } of layers) {
      if (this.#excluded.has(key)) continue;
      const users = (this.#users.get(key) ?? 0) - 1;
      if (users === 0) this.#bytes -= bytes;
      this.#users.set(key, users);
    }
  }
}

/** Name held, as if it was an image's, while anything is built for tasks. */
export const buildsHold = "builds-of-task-images";

/**
 * The images that this process needs at the moment. Other processes of this user see it, so that none of them removes
 * such an image; they see also when the process has died.
 */
export class ImageHolds {
  readonly #held = new Map<string, { lock: FileLock; count: number }>();

  /** Take this before looking whether the image exists. Disposing of it twice does no harm. */
  async take(tag: string): Promise<Disposable> {
    const file = await holdFile(tag);
    const currentProcess = await readCurrentProcess();
    const held = this.#held.get(tag) ?? { lock: createLock(file, currentProcess), count: 0 };
    this.#held.set(tag, held);
    held.count += 1;
    let isOver = false;
    const release = () => {
      if (isOver) return;
      isOver = true;
      held.count -= 1;
      if (held.count > 0) return;
      this.#held.delete(tag);
      held.lock.release();
    };
    return { [Symbol.dispose]: release };
  }
}

/** Whether a living process of this user needs the image. To be asked while no build of the tag can begin. */
export async function isHeld(tag: string, processes: HostProcesses): Promise<boolean> {
  return (await holderOf(await holdFile(tag), processes)) !== null;
}

async function holdFile(tag: string): Promise<string> {
  const directory = join(lockDirectory(), "task-images");
  await makeDirectory(directory, { mode: 0o700 });
  return join(directory, tag.replace(/[^\w.-]/g, "_"));
}

/** Images that are built on one of these inherit the labels, so an image of brig also has a tag of the repository. */
export const builtImageLabels = {
  /** The hash, as in the tag. */
  hash: "brig.task-image",
  /** The task for which it was built first, or the project's Dockerfile. */
  task: "brig.task",
  /** The ids of the images it was built from, separated by spaces. */
  bases: "brig.task-bases",
} as const;
