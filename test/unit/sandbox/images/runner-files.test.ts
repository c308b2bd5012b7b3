import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const toolbox = new URL("../../../../images/toolbox/", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, toolbox), "utf8");
const files = ["common", "runner-files", "runner"].flatMap((folder) =>
  readdirSync(new URL(folder, toolbox))
    .filter((name) => /\.[ch]$/.test(name))
    .map((name) => `${folder}/${name}`),
);
const sources = files.filter((path) => path.endsWith(".c"));

/** The list in the README, from the bottom layer up. */
const listed = [...read("runner/README.md").matchAll(/^## (.+)$|^- `([a-z0-9-]+\.[ch])` \S/gm)].reduce(
  ({ folder, paths }, [, title, name]) =>
    title === undefined
      ? { folder, paths: [...paths, `${folder}/${name}`] }
      : { folder: title === "Here" ? "runner" : title.replace("../", ""), paths },
  { folder: "", paths: [] as string[] },
).paths;
const layerOf = new Map(listed.map((path, layer) => [stemOf(path), layer]));

function stemOf(path: string): string {
  return path.replace(/\.[ch]$/, "");
}

function folderOf(path: string): string {
  return path.slice(0, path.indexOf("/"));
}

/** The paths of the headers that a file includes. */
function includes(path: string): string[] {
  return [...read(path).matchAll(/^#include "(.+)"$/gm)].map(([, header = ""]) => {
    const own = `${folderOf(path)}/${header}`;
    return files.includes(own) ? own : `common/${header}`;
  });
}

/** A source may always include runner.h, which is the data of PID 1; otherwise only what is listed above it, and its own header. */
function mayInclude(path: string, header: string): boolean {
  const [layer, below] = [layerOf.get(stemOf(path)), layerOf.get(stemOf(header))];
  if (layer === undefined || below === undefined) return false;
  return below <= layer || (header === "runner/runner.h" && path.endsWith(".c"));
}

/** The sources of a program by the command that links it, and all headers that they include. */
function partsOf(program: string): string[] {
  const [, inputs = ""] = new RegExp(` -o ${program} ((?:/src/\\S+ )+)`).exec(read("Dockerfile")) ?? [];
  const parts = new Set(inputs.trim().split(" ").flatMap(matching));
  // A set goes on with what is added to it meanwhile.
  for (const path of parts) for (const header of includes(path)) parts.add(header);
  return [...parts];
}

/** The sources that an argument of the compiler stands for: `/src/runner/*.c` or `/src/runner/main.c`. */
function matching(argument: string): string[] {
  const path = argument.replace("/src/", "");
  const found = path.endsWith("/*.c") ? sources.filter((one) => folderOf(one) === folderOf(path)) : [path];
  expect(found, argument).not.toEqual([]);
  return found;
}

const linesOf = (path: string) => read(path).split("\n").length - 1;

describe("the files of the runner", () => {
  it("are each listed in its README with what they are for", () => {
    const withoutSource = files.filter(
      (path) => path.endsWith(".h") && !sources.includes(`${stemOf(path)}.c`),
    );
    expect([...listed].sort()).toEqual([...sources, ...withoutSource].sort());
  });

  it.for(files)("%s uses only what stands above it in the list", (path) => {
    expect(includes(path).filter((header) => !mayInclude(path, header))).toEqual([]);
  });

  it("make a PID 1 of at most 5000 lines", () => {
    const parts = partsOf("runner");
    expect(parts).toEqual(
      expect.arrayContaining(["runner/main.c", "runner/runner.h", "common/job.c", "common/job.h"]),
    );
    expect(parts.reduce((sum, path) => sum + linesOf(path), 0)).toBeLessThanOrEqual(5000);
  });
});
