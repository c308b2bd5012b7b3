import { join } from "node:path";
import { createLock, type FileLock, holderOf, readCurrentProcess } from "../../../lib/file-lock.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import type { HostProcesses } from "../../../lib/owner.js";
import { lockDirectory } from "../../../sandbox/index.js";

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
