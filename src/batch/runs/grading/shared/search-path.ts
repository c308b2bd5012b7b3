import { posix } from "node:path";

const TRIPLETS = ["x86_64-linux-gnu", "aarch64-linux-gnu"];
const LIBRARIES = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"];

const libraryDirectories = [
  ...LIBRARIES,
  ...TRIPLETS.flatMap((triplet) =>
    ["/lib", "/usr/lib", "/usr/local/lib"].map((directory) => `${directory}/${triplet}`),
  ),
];
const headerDirectories = [
  "/usr/include",
  "/usr/local/include",
  ...TRIPLETS.map((triplet) => `/usr/include/${triplet}`),
];

/** Shared and static libraries, the files that a compiler starts programs with, and what it is told about libraries. */
const libraryFile =
  /^\/(?:usr\/)?(?:local\/)?lib[^/]*\/(?:(?:.*\/)?[^/]*\.so(?:\.[^/]*)?|(?!.*\/(?:site-packages|dist-packages|node_modules|gems)\/)(?:.*\/)?[^/]+\.(?:a|o|pc))$/;

/** A directory of headers, in front of what follows it. The compiler's own come before the others. */
const headerDirectory =
  /^(?:\/usr\/(?:local\/)?include(?:\/[^/]+-linux-[^/]+)?(?:\/c\+\+\/[^/]+(?:\/[^/]+-linux-[^/]+)?|\/fortify)?|\/(?:usr\/)?(?:local\/)?lib\d*\/gcc\/[^/]+\/[^/]+\/include(?:-fixed)?)(?=\/)/;

/** Whether compilers and the loader look in that place for files. */
export function isOnSearchPath(path: string): boolean {
  return libraryFile.test(path) || headerDirectory.test(path);
}

/** Other places for a program, library or header of the same name. One of them is found before the others. */
export function othersOfThatName(path: string, { programs, isProgram }: OnPath): string[] {
  const name = posix.basename(path);
  const joined = (directories: readonly string[], relative: string) =>
    directories.map((directory) => posix.join(directory, relative)).filter((other) => other !== path);
  if (isProgram) return joined(programs, name);
  const [headers] = headerDirectory.exec(path) ?? [];
  if (headers !== undefined) {
    // A directory in /usr/include may be one of headers itself, or only be named like one.
    const [top = ""] = /^\/usr\/(?:local\/)?include/.exec(headers) ?? [];
    const names = [headers, ...(top === "" ? [] : [top])].map((one) => path.slice(one.length + 1));
    return [...new Set(names.flatMap((relative) => joined(headerDirectories, relative)))];
  }
  const ofPackages = name.endsWith(".pc")
    ? [...libraryDirectories, "/usr/share"].map((directory) => `${directory}/pkgconfig`)
    : [];
  return joined([...libraryDirectories, ...ofPackages], name);
}

interface OnPath {
  /** The directories of PATH. */
  programs: readonly string[];
  /** Whether the path is that of a program. */
  isProgram: boolean;
}
