import type { Readable } from "node:stream";
import { neverStarted, type RecordedPlace } from "./never-started.js";

/** The files of an image, as nothing has changed them yet. */
export interface ImageFiles extends AsyncDisposable {
  /** A tar stream, as `Engine.readArchive` gives it. Null if the image has no such path. */
  read(path: string): Promise<Readable | null>;
}

/** Copies files out of a container that is never started. */
export async function openImageFiles(place: RecordedPlace, image: string): Promise<ImageFiles> {
  const container = await neverStarted(place, image);
  return {
    read: async (path) => await place.engine.readArchive(container.id, path),
    [Symbol.asyncDispose]: async () => await container[Symbol.asyncDispose](),
  };
}
