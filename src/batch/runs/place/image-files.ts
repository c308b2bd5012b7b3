import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { Engine, ReceivedEntry } from "../../../sandbox/index.js";
import { readTar } from "../../../sandbox/index.js";
import { neverStarted, type RecordedPlace } from "./never-started.js";

/**
 * The files of an image, as nothing has changed them yet. They are copied out of a container that is never started, and that is made
 * for the first of them: most attempts only add files.
 */
export class ImageFiles implements AsyncDisposable {
  readonly #place: RecordedPlace;
  readonly #imageId: string;
  #container: ReturnType<typeof neverStarted> | null = null;

  constructor(place: RecordedPlace, imageId: string) {
    this.#place = place;
    this.#imageId = imageId;
  }

  /** A tar stream, as `Engine.readArchive` gives it. Null if the image has no such path. */
  async read(path: string, signal?: AbortSignal): Promise<Readable | null> {
    const { engine } = this.#place;
    this.#container ??= neverStarted(this.#place, this.#imageId);
    return await engine.readArchive((await this.#container).id, path, signal && { signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const container = await this.#container?.catch(() => null);
    await container?.[Symbol.asyncDispose]();
  }
}

/** A container whose files the engine can read, and by which id. */
export interface ReadableContainer {
  engine: Pick<Engine, "readArchive">;
  containerId: string;
}

/** What is made of the first entry of an archive, whose content can only be read meanwhile. Null if there is none. */
export async function ofFirstEntry<T>(
  archive: Readable | null,
  make: (entry: ReceivedEntry) => T | Promise<T>,
): Promise<T | null> {
  if (archive === null) return null;
  for await (const entry of readTar(archive)) return await make(entry);
  return null;
}

const MAX_TEXT_BYTES = 1024 * 1024;

/** Null for anything but a regular file, and for one that is longer than any text that tests or users depend on. */
export async function textOfArchive(archive: Readable | null): Promise<string | null> {
  return await ofFirstEntry(archive, async ({ kind, sizeBytes, content }) =>
    kind === "file" && sizeBytes <= MAX_TEXT_BYTES ? (await buffer(content)).toString("utf8") : null,
  );
}
