import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { imageType } from "../../lib/image-type.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { firstFrame, type ImageSize, imageSize } from "./image-size.js";
import { withMetadata } from "./jpeg-segments.js";
import { workerSource } from "./photon-worker.js";

/** What models look at without scaling it down themselves. */
const MAX_SIDE_PIXELS = 2048;
/** To decode more would take more than a gigabyte of memory. */
const MAX_DECODED_PIXELS = 8192 * 8192;
const DEFAULT_MAX_MS = 20_000;
/** Of the thread's JavaScript, which does next to nothing; the picture is not in it. */
const MAX_HEAP_MB = 64;

/** A picture as a model is shown it. */
export interface FittedPicture {
  kind: "picture";
  /** Media type. */
  type: string;
  bytes: Buffer;
  size: ImageSize;
  /** What it was before; null where the bytes are as they were. */
  resizedFrom: { type: string; size: ImageSize } | null;
}

export type Fitted = FittedPicture | { kind: "unusable"; reason: string };

export interface FitOptions {
  /** Keep a picture that is too large as it is. Default: false. */
  keepsSize?: boolean;
  signal?: AbortSignal | undefined;
}

/**
 * Makes pictures fit 2048×2048 pixels. One that fits is passed through, byte for byte; of a larger one a JPEG becomes a JPEG and
 * anything else a PNG, of an animation the first frame. One at a time is decoded, in a thread that ends with it.
 */
export class PictureFitter {
  readonly #maxMs: number;
  #last: Promise<unknown> = Promise.resolve();

  /** `maxMs` is what one picture may take. Default: 20 seconds. */
  constructor({ maxMs = DEFAULT_MAX_MS }: { maxMs?: number } = {}) {
    this.#maxMs = maxMs;
  }

  /** Rejects only with the reason of an abort. */
  async fit(bytes: Buffer, { keepsSize = false, signal }: FitOptions = {}): Promise<Fitted> {
    const type = imageType(bytes);
    if (type === null) return unusable("it is no PNG, JPEG, GIF or WebP image");
    const size = imageSize(bytes, type);
    if (size === null) return unusable(`it is cut off or broken (${type})`);
    if (keepsSize || fits(size)) return { kind: "picture", type, bytes, size, resizedFrom: null };
    const frame = firstFrame(bytes, type);
    if (frame === null) return unusable(`it is cut off or broken (${type})`);
    if (frame.pixels > MAX_DECODED_PIXELS) return unusable(tooManyPixels(size));
    return await this.#inTurn(() =>
      resize({ bytes, frame: frame.bytes, type, size }, { maxMs: this.#maxMs, signal }),
    );
  }

  #inTurn<Result>(action: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(action);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

interface Limits {
  maxMs: number;
  signal: AbortSignal | undefined;
}

interface LargePicture {
  bytes: Buffer;
  frame: Buffer;
  type: string;
  size: ImageSize;
}

async function resize(
  { bytes, frame, type, size }: LargePicture,
  { maxMs, signal }: Limits,
): Promise<Fitted> {
  signal?.throwIfAborted();
  const asJpeg = type === "image/jpeg";
  const small = fittingSize(size);
  const outcome = await runPhoton({ bytes: frame, ...small, asJpeg }, { maxMs, signal });
  switch (outcome.kind) {
    case "late":
      return unusable(`making it fit takes longer than ${maxMs / 1000} seconds; make a smaller copy`);
    case "broken":
      return unusable(`it is cut off or broken (${type})`);
    case "resized":
      return {
        kind: "picture",
        type: asJpeg ? type : "image/png",
        bytes: asJpeg ? withMetadata(outcome.bytes, bytes) : outcome.bytes,
        size: small,
        resizedFrom: { type, size },
      };
  }
}

function fits({ width, height }: ImageSize): boolean {
  return Math.max(width, height) <= MAX_SIDE_PIXELS;
}

function fittingSize({ width, height }: ImageSize): ImageSize {
  const scale = MAX_SIDE_PIXELS / Math.max(width, height);
  const side = (pixels: number) => Math.max(1, Math.round(pixels * scale));
  return { width: side(width), height: side(height) };
}

type PhotonOutcome = { kind: "resized"; bytes: Buffer } | { kind: "broken" } | { kind: "late" };

interface PhotonJob extends ImageSize {
  bytes: Buffer;
  asJpeg: boolean;
}

async function runPhoton(job: PhotonJob, { maxMs, signal }: Limits): Promise<PhotonOutcome> {
  const photon = createRequire(import.meta.url).resolve("@silvia-odwyer/photon-node");
  const worker = new Worker(workerSource, {
    eval: true,
    workerData: { ...job, photon },
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  using limit = new TimeLimit(maxMs, signal);
  try {
    const bytes = await messageOf(worker, limit.signal);
    return bytes === null ? { kind: "broken" } : { kind: "resized", bytes };
  } catch (error) {
    signal?.throwIfAborted();
    if (limit.isOver) return { kind: "late" };
    throw error;
  } finally {
    await worker.terminate();
  }
}

/** What the worker has to say; null where it dies of the picture without a word. */
function messageOf(worker: Worker, stop: AbortSignal): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(stop.reason);
    if (stop.aborted) abort();
    stop.addEventListener("abort", abort, { once: true });
    worker.once("message", (bytes: Uint8Array | null) =>
      resolve(bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
    );
    worker.once("error", () => resolve(null));
    worker.once("exit", () => resolve(null));
  });
}

function tooManyPixels({ width, height }: ImageSize): string {
  return `it is ${width}×${height} pixels, and more than ${MAX_DECODED_PIXELS} cannot be made to fit; make a smaller copy`;
}

function unusable(reason: string): Fitted {
  return { kind: "unusable", reason };
}
