import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const runner = new URL("../../../../images/toolbox/runner/", import.meta.url);
const read = (name: string) => readFileSync(new URL(name, runner), "utf8");
const files = readdirSync(runner).filter((name) => /\.[ch]$/.test(name));
const sources = files.filter((name) => name.endsWith(".c"));

/** The list at the top of runner.h, from the bottom layer up. */
const listed = [...read("runner.h").matchAll(/^ \* {3}([a-z0-9-]+\.[ch]) +\S/gm)].map(
  ([, name = ""]) => name,
);
const layerOf = new Map(listed.map((name, layer) => [stemOf(name), layer]));

function stemOf(name: string): string {
  return name.replace(/\.[ch]$/, "");
}

function includes(name: string): string[] {
  return [...read(name).matchAll(/^#include "(.+)"$/gm)].map(([, header = ""]) => header);
}

/** A source may always include runner.h, which is the data of PID 1; otherwise only what is listed above it, and its own header. */
function mayInclude(name: string, header: string): boolean {
  const [layer, below] = [layerOf.get(stemOf(name)), layerOf.get(stemOf(header))];
  if (layer === undefined || below === undefined) return false;
  return below <= layer || (header === "runner.h" && name.endsWith(".c"));
}

describe("the files of the runner", () => {
  it("are each listed in runner.h with what they are for", () => {
    const withoutSource = files.filter(
      (name) => name.endsWith(".h") && !sources.includes(`${stemOf(name)}.c`),
    );
    expect([...listed].sort()).toEqual([...sources, ...withoutSource].sort());
  });

  it.for(files)("%s uses only what stands above it in the list", (name) => {
    expect(includes(name).filter((header) => !mayInclude(name, header))).toEqual([]);
  });
});
