import { dirname } from "node:path";

/** Whether `path` lies below `directory`; both absolute and without `..`. A path is not below itself. */
export function isBelow(path: string, directory: string): boolean {
  return path !== directory && path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

export function isAtOrBelow(path: string, directory: string): boolean {
  return path === directory || isBelow(path, directory);
}

/** The directories strictly between `directory` and `path`, outermost first. */
export function directoriesBetween(directory: string, path: string): string[] {
  const between: string[] = [];
  for (let at = dirname(path); isBelow(at, directory); at = dirname(at)) between.unshift(at);
  return between;
}

/** How many names a path has: `/` has none. */
export function depth(path: string): number {
  return path.split("/").filter((name) => name !== "").length;
}

/** Every directory above `path`, the nearest first. */
export function directoriesAbove(path: string): string[] {
  const above: string[] = [];
  for (let at = dirname(path); ; at = dirname(at)) {
    above.push(at);
    if (at === "/") return above;
  }
}
