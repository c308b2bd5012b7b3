import type { Engine } from "../docker/engine-types.js";
import { type ImageName, imageDefinitions } from "./definition.js";
import { imageLabel } from "./ensure.js";
import { look } from "./look.js";

/** An image that brig has built, as the engine has it. */
export interface ListedImage {
  name: ImageName;
  id: string;
  tags: string[];
  sizeBytes: number;
  createdAt: Date;
  /** False when its files have changed since; then the next build makes another. */
  isCurrent: boolean;
}

/** Every image of brig's in the engine, of this version or another, newest first within a name. */
export async function listImages(engine: Engine): Promise<ListedImage[]> {
  const { arch } = await engine.info();
  const names = Object.keys(imageDefinitions) as ImageName[];
  const wanted = await Promise.all(names.map((name) => look(engine, { name, arch })));
  const lists = await Promise.all(
    wanted.map(async ({ name, image }) => {
      const images = await engine.listImages([`${imageLabel}=${name}`]);
      return images
        .map(({ id, tags, sizeBytes, createdAt }) => ({
          name,
          id,
          tags,
          sizeBytes,
          createdAt,
          isCurrent: id === image?.id,
        }))
        .toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
    }),
  );
  return lists.flat();
}
