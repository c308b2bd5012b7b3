import { join } from "node:path";
import { packageRoot } from "../package-root.js";
import { nodeFiles, type PackageFile, ripgrepFile } from "./npm-packages.js";

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
  /** What the build gets from the npm registry besides. */
  packageFiles: readonly PackageFile[];
  /** `repository:latest` always names the newest build, so that users can write the name alone. */
  hasMovingTag: boolean;
}

export const imageDefinitions: Readonly<Record<ImageName, ImageDefinition>> = {
  base: {
    name: "base",
    repository: "brig/base",
    directory: imageDirectory("base"),
    isPart: (path) => path === "Dockerfile",
    packageFiles: nodeFiles,
    hasMovingTag: true,
  },
  toolbox: {
    name: "toolbox",
    repository: "brig/toolbox",
    directory: imageDirectory("toolbox"),
    isPart: (path) => /^(?:Dockerfile|hosts)$|^(?:runner|apply-patch)\/[^/]+\.[ch]$/.test(path),
    packageFiles: [ripgrepFile],
    hasMovingTag: false,
  },
  engine: {
    name: "engine",
    repository: "brig/test-engine",
    directory: imageDirectory("engine"),
    isPart: (path) => path === "Dockerfile" || path === "start-engine",
    packageFiles: [],
    hasMovingTag: false,
  },
};

function imageDirectory(name: ImageName): string {
  return join(packageRoot, "images", name);
}
