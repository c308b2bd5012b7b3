import { dirname } from "node:path";

/** Both paths must be absolute and without `..`. A path is not below itself. */
export function isBelow(path: string, directory: string): boolean {
  return path !== directory && path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

export function isAtOrBelow(path: string, directory: string): boolean {
  return path === directory || isBelow(path, directory);
}

/** The directories between `directory` and `path`, without these two, outermost first. */
export function directoriesBetween(directory: string, path: string): string[] {
  const between: string[] = [];
  for (let at = dirname(path); isBelow(at, directory); at = dirname(at)) between.unshift(at);
  return between;
}

/** The number of names in a path; 0 for `/`. */
export function depth(path: string): number {
  return path.split("/").filter((name) => name !== "").length;
}

/** All directories above `path`, nearest first. */
export function directoriesAbove(path: string): string[] {
  const above: string[] = [];
  for (let at = dirname(path); ; at = dirname(at)) {
    above.push(at);
    if (at === "/") return above;
  }
}
