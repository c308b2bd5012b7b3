import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * An empty directory of the service's own, below the copy-on-write workspaces of a sandbox and of its forks: nothing is ever written
 * to it. It is removed when the last one that holds it lets go of it.
 */
export class EmptyDirectory {
  readonly path: string;
  #holderCount = 0;

  private constructor(path: string) {
    this.path = path;
  }

  /** Makes one in a directory that nobody else can enter. */
  static async make(parent: string): Promise<EmptyDirectory> {
    const path = await mkdtemp(join(parent, "workspace-"));
    // The workspace gets its owner and its mode, and any user of an image has to be able to write to it.
    await chmod(path, 0o777);
    return new EmptyDirectory(path);
  }

  /** The one for all sandboxes that outlive their service, which is never removed. */
  static async lasting(path: string): Promise<EmptyDirectory> {
    const directory = new EmptyDirectory(path);
    directory.#holderCount++;
    await mkdir(directory.path, { recursive: true });
    await chmod(directory.path, 0o777);
    return directory;
  }

  /** Keeps it until what this returns is disposed of, which may be done twice. */
  hold(): AsyncDisposable {
    this.#holderCount++;
    let isHeld = true;
    return {
      [Symbol.asyncDispose]: async () => {
        if (!isHeld) return;
        isHeld = false;
        this.#holderCount--;
        if (this.#holderCount === 0) await rm(this.path, { recursive: true, force: true });
      },
    };
  }
}
