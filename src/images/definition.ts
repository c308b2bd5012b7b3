import { join } from "node:path";
import { packageRoot } from "../package-root.js";

/** The images brig makes: the default sandbox, the toolbox for every sandbox, and the test suite's own engine. */
export type ImageName = "base" | "toolbox" | "engine";

export interface ImageDefinition {
  name: ImageName;
  /** The image's name without a tag. */
  repository: string;
  /** The folder of its Dockerfile. */
  directory: string;
  /** Which files of the folder, by their path in it, belong to the build. */
  isPart: (path: string) => boolean;
  /** The build also gets a static `rg` for the engine's architecture. */
  needsRipgrep: boolean;
  /** `repository:latest` always names the newest build, so that users can write the name alone. */
  hasMovingTag: boolean;
}

export const imageDefinitions: Readonly<Record<ImageName, ImageDefinition>> = {
  base: {
    name: "base",
    repository: "brig/base",
    directory: imageDirectory("base"),
    isPart: (path) => path === "Dockerfile",
    needsRipgrep: false,
    hasMovingTag: true,
  },
  toolbox: {
    name: "toolbox",
    repository: "brig/toolbox",
    directory: imageDirectory("toolbox"),
    isPart: (path) => path === "Dockerfile" || /^runner\/[^/]+\.[ch]$/.test(path),
    needsRipgrep: true,
    hasMovingTag: false,
  },
  engine: {
    name: "engine",
    repository: "brig/test-engine",
    directory: imageDirectory("engine"),
    isPart: (path) => path === "Dockerfile" || path === "start-engine",
    needsRipgrep: false,
    hasMovingTag: false,
  },
};

function imageDirectory(name: ImageName): string {
  return join(packageRoot, "images", name);
}
