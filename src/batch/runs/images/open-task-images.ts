import { isBrigError } from "../../../errors.js";
import { readCurrentProcess } from "../../../lib/file-lock.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import type { ContextLimits, Engine, ImageProgress } from "../../../sandbox/index.js";
import {
  BuiltImageStore,
  basesOf,
  buildsHold,
  ImageActivity,
  ImageBuilds,
  ImageReferences,
  isHeld,
  missingOffline,
  removeUnfinished,
} from "../../../sandbox/index.js";
import type { TaskImage } from "../../tasks/task.js";
import type { TaskImages } from "./task-images.js";
import type { WantedImage } from "./wanted-images.js";

export interface TaskImagesOptions {
  engine: Engine;
  /** Other names for images, by the names that tasks and Dockerfiles use. Default: none. */
  aliases?: Readonly<Record<string, string>> | undefined;
  /** Whether nothing may be pulled, and builds have no network. Default: false. */
  isOffline?: boolean | undefined;
  /** How many images are built or pulled at once. Default: 2. */
  maxAtOnce?: number | undefined;
  contextLimits?: ContextLimits | undefined;
  /** Marks what builds leave as belonging to this `$BRIG_HOME`, and removes it once later builds have ended. Default: neither. */
  brigHome?: string | undefined;
  /** The disk space that the images of tasks may take, those of earlier runs included. Default: no limit. */
  budgetBytes?: number | undefined;
  /** Called when images cannot be removed; the run goes on. */
  onWarning?: ((error: unknown) => void) | undefined;
  onProgress?: ((progress: ImageProgress) => void) | undefined;
}

/** The images of all tasks of a run. */
export interface RunImages extends TaskImages {
  /**
   * Looks on the engine for everything that would have to be pulled, when nothing may be pulled. Error:
   * `image.missing` with the names of all that are missing.
   */
  requireLocal(images: readonly TaskImage[]): Promise<void>;
  /** Builds or pulls all of them, each once, and says which failed. */
  prebuild(wanted: readonly WantedImage[], options?: PrebuildOptions): Promise<FailedImage[]>;
  /** Removes images until those of tasks are within the budget; does nothing if there is none. */
  tidy(signal: AbortSignal): Promise<void>;
  /**
   * Removes what earlier builds of this `$BRIG_HOME` left that failed or were killed. What one of this run has left stays, with all
   * else: the next try goes on from there.
   */
  removeLeft(): Promise<void>;
}

export interface PrebuildOptions {
  signal?: AbortSignal | undefined;
  /** Called for each image that is ready or has failed. */
  onSettled?: ((outcome: WantedImage | FailedImage) => void) | undefined;
}

export interface FailedImage extends WantedImage {
  error: unknown;
}

export function openTaskImages(options: TaskImagesOptions): RunImages {
  const { engine, aliases = {}, isOffline = false, maxAtOnce = 2, contextLimits, onProgress } = options;
  const { brigHome } = options;
  const activity = new ImageActivity(maxAtOnce, onProgress);
  const references = new ImageReferences({ engine, aliases, isOffline, activity });
  const tidy = tidying(options);
  const builds = new ImageBuilds({
    ...{ engine, references, activity, builtFor: "task", isOffline, brigHome, contextLimits },
    onBuilt: tidy,
  });

  const ready: TaskImages["ready"] = async (image, { task = null, signal } = {}) => {
    if (image.kind === "build") return await builds.ready(image, { task, signal });
    const found = await references.provide(image.reference, { task, signal });
    // Images that were pulled are never removed.
    return { id: found.image.id, reference: found.reference, [Symbol.dispose]: () => undefined };
  };

  return {
    ready,

    async requireLocal(images) {
      if (!isOffline) return;
      const needed = new Set<string>();
      for (const image of images)
        for (const name of image.kind === "build" ? await basesOf(image) : [image.reference])
          needed.add(name);
      const missing: string[] = [];
      for (const name of needed)
        if ((await references.find(name)) === null) missing.push(references.nameOf(name));
      if (missing.length > 0) throw missingOffline(missing.toSorted());
    },

    async prebuild(wanted, { signal, onSettled } = {}) {
      const failed: FailedImage[] = [];
      await Promise.all(
        wanted.map(async ({ task, image }) => {
          try {
            using _image = await ready(image, { task, signal });
          } catch (error) {
            if (signal?.aborted || isBrigError(error, "engine.unreachable")) throw error;
            const failure = { task, image, error };
            failed.push(failure);
            return onSettled?.(failure);
          }
          onSettled?.({ task, image });
        }),
      );
      return failed;
    },

    tidy,

    async removeLeft() {
      if (brigHome === undefined || builds.hasFailed) return;
      const { processes } = await readCurrentProcess();
      if (await isHeld(buildsHold, processes)) return;
      await removeUnfinished(engine, "brig.unfinished-task-image", brigHome).catch(options.onWarning);
    },
  };
}

/** Another user of the engine may be about to start a container from an image that was used so lately. */
const recentUseMs = 60_000;

/** Keeps the images within the budget. Builds that end during one round are looked at together in the next. */
function tidying({ engine, budgetBytes, onWarning }: TaskImagesOptions) {
  if (budgetBytes === undefined) return async () => undefined;
  const store = new BuiltImageStore(engine);
  let round: Promise<unknown> = Promise.resolve();
  let waiting: Promise<void> | null = null;
  return async (signal: AbortSignal): Promise<void> => {
    waiting ??= round.then(async () => {
      waiting = null;
      const usedBefore = new Date(Date.now() - recentUseMs);
      round = store.tidy({ budgetBytes, usedBefore }).catch((error) => onWarning?.(error));
      await round;
    });
    await beforeAbort(waiting, signal);
  };
}
