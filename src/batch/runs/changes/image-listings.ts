import type { Engine } from "../../../sandbox/index.js";
import { neverStarted, type RecordedPlace } from "../place/never-started.js";
import { type Listing, type ListingLimits, readListing } from "./listing.js";

/** All that are kept have at most so many entries together, besides the last one. */
const MAX_KEPT_ENTRIES = 400_000;

type Reading = Promise<Listing | null>;

/** Listings of images, by engine. Images never change, so each is read once for all attempts of a process. */
const ofEngines = new WeakMap<Engine, Map<string, Reading>>();

/** Reads a directory of an image, unless that was done before. Null beyond a limit. Errors: the engine's. */
export function imageListing(
  place: RecordedPlace,
  { imageId, directory }: { imageId: string; directory: string },
  limits: ListingLimits,
): Reading {
  const { engine } = place;
  const kept = ofEngines.get(engine) ?? new Map<string, Reading>();
  ofEngines.set(engine, kept);
  const key = `${imageId} ${directory}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const reading = readImage(place, { imageId, directory }, limits);
  kept.set(key, reading);
  const forget = () => void kept.delete(key);
  void reading.then(() => dropOldest(kept, key), forget);
  return reading;
}

async function readImage(
  place: RecordedPlace,
  { imageId, directory }: { imageId: string; directory: string },
  limits: ListingLimits,
): Reading {
  await using container = await neverStarted(place, imageId);
  return await readListing(place.engine, { containerId: container.id, directory }, { limits });
}

async function dropOldest(kept: Map<string, Reading>, last: string): Promise<void> {
  const sizes = await Promise.all(
    [...kept].map(async ([key, reading]) => ({ key, size: (await reading.catch(() => null))?.size ?? 0 })),
  );
  let total = sizes.reduce((sum, { size }) => sum + size, 0);
  for (const { key, size } of sizes) {
    if (total <= MAX_KEPT_ENTRIES) return;
    if (key === last) continue;
    kept.delete(key);
    total -= size;
  }
}
