import { describe, expect, it } from "vitest";
import type { ImageLayer } from "../../../../../src/sandbox/docker/engine-types.js";
import { DiskShare, storedLayers } from "../../../../../src/sandbox/images/dockerfile/built-image-store.js";

const layer = (createdBy: string, bytes: number, createdAt = 1): ImageLayer => ({
  createdAt,
  createdBy,
  bytes,
});
/** Histories have the newest layer first. */
const image = (...layers: ImageLayer[]) => storedLayers(layers.toReversed());

const base = [layer("base", 1000), layer("CMD", 0)];
const packages = layer("apt-get install", 500);

describe("the disk space of images", () => {
  it("counts a layer once, however many images share it", () => {
    const share = new DiskShare(new Set());
    const one = image(...base, packages, layer("COPY one", 10));
    const two = image(...base, packages, layer("COPY two", 20));
    share.add(one);
    share.add(two);
    expect(share.bytes).toBe(1530);
    share.remove(one);
    expect(share.bytes).toBe(1520);
    share.remove(two);
    expect(share.bytes).toBe(0);
  });

  it("does not count what stays anyway", () => {
    const share = new DiskShare(new Set(image(...base).map(({ key }) => key)));
    share.add(image(...base, packages));
    expect(share.bytes).toBe(500);
  });

  it("tells layers apart that came about in the same way on something else, or at another time", () => {
    const share = new DiskShare(new Set());
    share.add(image(...base, packages));
    share.add(image(layer("other base", 300), packages));
    share.add(image(...base, { ...packages, createdAt: 2 }));
    expect(share.bytes).toBe(1000 + 500 + 300 + 500 + 500);
  });
});
