import type { Worker } from "node:worker_threads";
import { imageType } from "../../lib/image-type.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { firstFrame, type ImageSize, imageSize } from "./image-size.js";
import { type ImageForm, workerSource } from "./photon-worker.js";

/** Models scale down larger images themselves. */
const MAX_SIDE_PIXELS = 2048;
/** Decoding a larger image would take more than a gigabyte of memory. */
const MAX_DECODED_PIXELS = 8192 * 8192;
const DEFAULT_MAX_MS = 20_000;
/** For the JavaScript heap of the thread. The image is not in it. */
const MAX_HEAP_MB = 64;

/** An image of a size that models accept. */
export interface FittedImage {
  kind: "image";
  type: string;
  bytes: Buffer;
  size: ImageSize;
  /** Null if the bytes are those of the original. */
  resizedFrom: { type: string; size: ImageSize } | null;
}

export type FitResult = FittedImage | { kind: "unusable"; reason: string };

export interface FitOptions {
  /** Returns the image as it is, even if it is too large. Default: false. */
  keepsSize?: boolean;
  signal?: AbortSignal | undefined;
}

/**
 * Shrinks images to at most 2048×2048 pixels. An image that is not larger stays as it is, byte for byte. A
 * larger JPEG becomes a JPEG; any other image becomes a PNG, with only the first frame of an animation.
 * Images are resized one after the other, each in its own thread.
 */
export class ImageResizer {
  readonly #maxMs: number;
  #last: Promise<unknown> = Promise.resolve();

  /** `maxMs` is the time limit for one image. Default: 20 seconds. */
  constructor({ maxMs = DEFAULT_MAX_MS }: { maxMs?: number } = {}) {
    this.#maxMs = maxMs;
  }

  /** Rejects only with the signal's reason. */
  async fit(bytes: Buffer, { keepsSize = false, signal }: FitOptions = {}): Promise<FitResult> {
    const type = imageType(bytes);
    if (type === null) return unusable("it is no PNG, JPEG, GIF or WebP image");
    const size = imageSize(bytes, type);
    if (size === null) return broken(type);
    if (keepsSize || fits(size)) return { kind: "image", type, bytes, size, resizedFrom: null };
    const frame = firstFrame(bytes, type);
    if (frame === null) return broken(type);
    if (frame.pixels > MAX_DECODED_PIXELS) return unusable(tooManyPixels(size));
    return await this.#inTurn(() =>
      resize({ bytes, frame: frame.bytes, type, size }, { maxMs: this.#maxMs, signal }),
    );
  }

  /** Makes a picture of this size, of the first frame of an animation. Null if it is broken, or takes too long or too much memory. */
  async scale(
    bytes: Buffer,
    { form, ...size }: ImageSize & { form: "png" | "pixels" },
  ): Promise<Buffer | null> {
    const type = imageType(bytes);
    const frame = type === null ? null : firstFrame(bytes, type);
    if (frame === null || frame.pixels > MAX_DECODED_PIXELS) return null;
    const answer = await this.#inTurn(() =>
      askWorker({ bytes: frame.bytes, ...size, form }, { maxMs: this.#maxMs }),
    );
    return answer === "late" ? null : answer;
  }

  #inTurn<Result>(action: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(action);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

interface LargeImage {
  bytes: Buffer;
  frame: Buffer;
  type: string;
  size: ImageSize;
}

interface Limits {
  maxMs: number;
  signal?: AbortSignal | undefined;
}

async function resize({ bytes, frame, type, size }: LargeImage, limits: Limits): Promise<FitResult> {
  const asJpeg = type === "image/jpeg";
  const small = fittingSize(size);
  const resized = await askWorker({ bytes: frame, ...small, form: asJpeg ? "jpeg" : "png" }, limits);
  if (resized === null) return broken(type);
  if (resized === "late")
    return unusable(`making it fit takes longer than ${limits.maxMs / 1000} seconds; make a smaller copy`);
  return {
    kind: "image",
    type: asJpeg ? type : "image/png",
    bytes: asJpeg ? withMetadata(resized, bytes) : resized,
    size: small,
    resizedFrom: { type, size },
  };
}

interface Job extends ImageSize {
  bytes: Buffer;
  form: ImageForm;
}

/** Resolves to null for an image that cannot be decoded. Rejects only with the signal's reason. */
async function askWorker(job: Job, { maxMs, signal }: Limits): Promise<Buffer | null | "late"> {
  signal?.throwIfAborted();
  const worker = await startWorker(job);
  using limit = new TimeLimit(maxMs, signal);
  try {
    return await beforeAbort(messageOf(worker), limit.signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (!limit.isOver) throw error;
    return "late";
  } finally {
    await worker.terminate();
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

/** The modules are loaded only here, because few sessions have an image that is too large. */
async function startWorker(job: Job): Promise<Worker> {
  const [{ createRequire }, { Worker: Thread }] = await Promise.all([
    import("node:module"),
    import("node:worker_threads"),
  ]);
  const photon = createRequire(import.meta.url).resolve("@silvia-odwyer/photon-node");
  return new Thread(workerSource, {
    eval: true,
    workerData: { ...job, photon },
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
}

/** Resolves to null if the worker crashes before it sends a message. */
function messageOf(worker: Worker): Promise<Buffer | null> {
  return new Promise((resolve) => {
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

function broken(type: string): FitResult {
  return unusable(`it is cut off or broken (${type})`);
}

function unusable(reason: string): FitResult {
  return { kind: "unusable", reason };
}

const EXIF = { marker: 0xe1, name: "Exif\0" };
const COLOUR_PROFILE = { marker: 0xe2, name: "ICC_PROFILE\0" };
const START_OF_SCAN = 0xda;

/** Copies the colour profile and the orientation. Photos of phones are often stored rotated. */
function withMetadata(jpeg: Buffer, original: Buffer): Buffer {
  return Buffer.concat([jpeg.subarray(0, 2), ...metadata(original), jpeg.subarray(2)]);
}

function metadata(jpeg: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 2; at + 4 <= jpeg.length && jpeg[at] === 0xff && jpeg[at + 1] !== START_OF_SCAN; ) {
    const end = at + 2 + jpeg.readUInt16BE(at + 2);
    const segment = jpeg.subarray(at, end);
    if (end <= jpeg.length && (is(segment, EXIF) || is(segment, COLOUR_PROFILE))) found.push(segment);
    at = Math.max(end, at + 4);
  }
  return found;
}

function is(segment: Buffer, { marker, name }: { marker: number; name: string }): boolean {
  return segment[1] === marker && segment.toString("latin1", 4, 4 + name.length) === name;
}
