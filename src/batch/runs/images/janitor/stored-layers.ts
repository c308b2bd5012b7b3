import { createHash } from "node:crypto";
import type { ImageLayer } from "../../../../sandbox/index.js";

/** A layer on the disk. Images that were built on the same one share it, and its key. */
export interface StoredLayer {
  key: string;
  bytes: number;
}

/**
 * The layers of an image, from its history. Engines give no ids for the layers of images that they pulled, so a layer is
 * known by how it and all below it came about.
 */
export function storedLayers(history: readonly ImageLayer[]): StoredLayer[] {
  let key = "";
  return history.toReversed().map(({ createdAt, createdBy, bytes }) => {
    const own = JSON.stringify([key, createdAt, createdBy, bytes]);
    key = createHash("sha256").update(own).digest("base64");
    return { key, bytes };
  });
}

/** The disk space of several images, each layer counted once. */
export class DiskShare {
  readonly #excluded: ReadonlySet<string>;
  readonly #users = new Map<string, number>();
  #bytes = 0;

  /** Layers with these keys stay, whatever is removed, and do not count. */
  constructor(excluded: ReadonlySet<string>) {
    this.#excluded = excluded;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(layers: readonly StoredLayer[]): void {
    for (const { key, bytes } of layers) {
      if (this.#excluded.has(key)) continue;
      const users = this.#users.get(key) ?? 0;
      if (users === 0) this.#bytes += bytes;
      this.#users.set(key, users + 1);
    }
  }

  /** Removes what was added before. */
  remove(layers: readonly StoredLayer[]): void {
    for (const { key, bytes } of layers) {
      if (this.#excluded.has(key)) continue;
      const users = (this.#users.get(key) ?? 0) - 1;
      if (users === 0) this.#bytes -= bytes;
      this.#users.set(key, users);
    }
  }
}
