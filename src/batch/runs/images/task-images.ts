import type { ReadyImage } from "../../../sandbox/index.js";
import type { TaskImage } from "../../tasks/task.js";

/** Gives the images of tasks: builds or pulls each once, however many attempts wait for it. */
export interface TaskImages {
  /**
   * Resolves when the image exists on the engine. `task` is the name of the task, for messages and labels.
   * Errors: `image.missing`, `image.build-failed`, those of the engine, the signal's reason. Aborting ends a build
   * only if nobody else waits for it.
   */
  ready(
    image: TaskImage,
    options?: { task?: string | undefined; signal?: AbortSignal | undefined },
  ): Promise<ReadyImage>;
}
