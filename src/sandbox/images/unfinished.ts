import { isBrigError } from "../../errors.js";
import type { Engine } from "../docker/engine-types.js";
import { homeId } from "./toolbox-volume.js";

/**
 * The labels of all that a build makes before it is finished, of images of tasks and of brig's own; their value is the id of the
 * `$BRIG_HOME`. An image that is finished has the label without a value, so that others are not marked that are built on it.
 */
export type UnfinishedLabel = "brig.unfinished-task-image" | "brig.unfinished-image";

/** What to put into a Dockerfile below each `FROM`. */
export function unfinishedInstruction(label: UnfinishedLabel, brigHome: string): string {
  return `LABEL ${label}=${homeId(brigHome)}`;
}

export function finishedLabels(label: UnfinishedLabel): Record<string, string> {
  return { [label]: "" };
}

type ImagesEngine = Pick<Engine, "listImages" | "removeImage">;

/** The ids of images without a name that builds of this `$BRIG_HOME` have left: failed ones, and stages of others. */
export async function unfinishedImages(
  engine: ImagesEngine,
  label: UnfinishedLabel,
  brigHome: string,
): Promise<string[]> {
  const images = await engine.listImages([`${label}=${homeId(brigHome)}`]);
  return images.filter(({ tags }) => tags.length === 0).map(({ id }) => id);
}

/**
 * Removes them with the layers that only they have. Those that the engine refuses to remove stay: a container uses them, for
 * example of a build that goes on. Returns the ids of the others.
 */
export async function removeUnfinished(
  engine: ImagesEngine,
  label: UnfinishedLabel,
  brigHome: string,
): Promise<string[]> {
  const removed: string[] = [];
  for (const id of await unfinishedImages(engine, label, brigHome)) {
    try {
      await engine.removeImage(id);
      removed.push(id);
    } catch (error) {
      if (!isBrigError(error, "engine.failed")) throw error;
    }
  }
  return removed;
}
