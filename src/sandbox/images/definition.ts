import { join } from "node:path";
import { packageRoot } from "../../package-root.js";
import { nodeFiles, type PackageFile, ripgrepFile } from "./npm-packages.js";

/** Images for projects in one language, which are built on the default one. */
export const LANGUAGES = ["node", "python", "go", "rust"] as const;

export type Language = (typeof LANGUAGES)[number];

/** The default image of sandboxes, the toolbox for every sandbox, the engine of the test suite, and one for each language. */
export type ImageName = "base" | "toolbox" | "engine" | Language;

export interface ImageDefinition {
  name: ImageName;
  repository: string;
  directory: string;
  /** What it is built on. Default: Debian. */
  parent?: "base";
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
  node: language("node"),
  python: language("python"),
  go: language("go"),
  rust: language("rust"),
};

function language(name: Language): ImageDefinition {
  return {
    name,
    repository: `brig/${name}`,
    directory: imageDirectory(name),
    parent: "base",
    isPart: (path) => path === "Dockerfile",
    packageFiles: [],
    hasMovingTag: true,
  };
}

function imageDirectory(name: ImageName): string {
  return join(packageRoot, "images", name);
}
