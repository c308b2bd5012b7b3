import { Gate } from "../../../lib/time/gate.js";

/** Work on an image that is under way. */
export interface ImageProgress {
  /** The reference, or the tag of an image that is built. */
  image: string;
  /** Null if the caller named none. */
  task: string | null;
  /**
   * "queue": others are built or pulled first; "wait": another process is building it; "failed" and "ready" come last.
   */
  stage: "queue" | "wait" | "pull" | "build" | "ready" | "failed";
  /** A line of the engine's progress. */
  line?: string;
}

/** Limits how many images are built or pulled at once, and tells about each. */
export class ImageActivity {
  readonly #gate = new Gate();
  readonly #width: number;
  readonly #onProgress: ((progress: ImageProgress) => void) | undefined;

  constructor(width: number, onProgress: ((progress: ImageProgress) => void) | undefined) {
    this.#width = width;
    this.#onProgress = onProgress;
  }

  tell(progress: ImageProgress): void {
    this.#onProgress?.(progress);
  }

  /** Runs the work when it is its turn, and tells how it ends. */
  async run<T>(
    subject: Pick<ImageProgress, "image" | "task">,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    this.tell({ ...subject, stage: "queue" });
    try {
      const result = await this.#gate.pass(work, { width: this.#width, signal });
      this.tell({ ...subject, stage: "ready" });
      return result;
    } catch (error) {
      this.tell({ ...subject, stage: "failed" });
      throw error;
    }
  }
}
