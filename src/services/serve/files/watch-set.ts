import type { FileWatch, Sandbox } from "../../../sandbox/index.js";
import { busy } from "../http/refusal.js";

/** Of one sandbox. Each is a program in it. */
const MAX_WATCHES = 32;
const RETRY_SECONDS = 5;

/** Counts the watches of a sandbox. */
export class WatchSet {
  #count = 0;

  /** Errors: those of `files.watch`; a refusal with 429 for too many. */
  async open(
    { files }: Sandbox,
    path: string,
    options: { recursive?: boolean | undefined; signal: AbortSignal },
  ): Promise<FileWatch> {
    if (this.#count >= MAX_WATCHES)
      throw busy(`a sandbox may have ${MAX_WATCHES} watches, and has`, {
        status: 429,
        retrySeconds: RETRY_SECONDS,
      });
    this.#count++;
    let isCounted = true;
    const free = () => {
      if (isCounted) this.#count--;
      isCounted = false;
    };
    try {
      const watch = await files.watch(path, options);
      const close = async () => {
        await watch.close();
        free();
      };
      return {
        [Symbol.asyncIterator]: () => watch[Symbol.asyncIterator](),
        close,
        [Symbol.asyncDispose]: close,
      };
    } catch (error) {
      free();
      throw error;
    }
  }
}
