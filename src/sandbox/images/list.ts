import type { Engine } from "../docker/engine-types.js";
import { type ImageName, imageDefinitions } from "./definition.js";
import { imageLabel } from "./ensure.js";
import { findImages } from "./find-image.js";

export interface ListedImage {
  name: ImageName;
  id: string;
  tags: string[];
  sizeBytes: number;
  createdAt: Date;
  /** False if its files have changed since it was built. */
  isCurrent: boolean;
}

/**
 * All images that brig has built, also in other versions; the newest of each name first. An image that others have built
 * on one of them inherits its labels, but not its name.
 */
export async function listImages(engine: Engine): Promise<ListedImage[]> {
  const wanted = await findImages(engine, Object.keys(imageDefinitions) as ImageName[]);
  const lists = await Promise.all(
    wanted.map(async ({ name, image }) => {
      const images = await engine.listImages([`${imageLabel}=${name}`]);
      const { repository } = imageDefinitions[name];
      return images
        .filter(({ tags }) => tags.length === 0 || tags.some((tag) => tag.startsWith(`${repository}:`)))
        .map(({ id, tags, sizeBytes, createdAt }) => {
          return { name, id, tags, sizeBytes, createdAt, isCurrent: id === image?.id };
        })
        .toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
    }),
  );
  return lists.flat();
}
