import { readdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { lookThrough } from "../doors.js";
import { root } from "../setup/run.js";

/** Which tests load a file, the nearest first, in a project at a path. */
export class NearestTests {
  #path;
  #imports = new Map();

  constructor(path) {
    this.#path = path;
  }

  /**
   * By how many imports are between the test and the file. Of those as near as others, the ones in the folder of the same name. Tests of the project
   * as a whole, which are in no folder, come last: they load nearly everything and use little of it.
   */
  async of(file, folder) {
    const entries = await readdir(join(this.#path, folder), { recursive: true });
    const tests = entries.filter((name) => name.endsWith(".test.ts")).map((name) => `${folder}/${name}`);
    const found = [];
    for (const test of tests) {
      const distance = await this.#distance(test, file);
      if (distance !== null)
        found.push({ test, isOfAll: dirname(test) === folder, distance, apart: apart(test, file) });
    }
    found.sort(
      (a, b) =>
        Number(a.isOfAll) - Number(b.isOfAll) ||
        a.distance - b.distance ||
        a.apart - b.apart ||
        (a.test < b.test ? -1 : 1),
    );
    return found.map(({ test }) => test);
  }

  async #distance(from, to) {
    const seen = new Set([from]);
    let front = [from];
    for (let distance = 0; front.length > 0; distance++) {
      if (front.includes(to)) return distance;
      const next = [];
      for (const file of front)
        for (const one of await this.#importsOf(file))
          if (!seen.has(one)) {
            seen.add(one);
            next.push(one);
          }
      front = next;
    }
    return null;
  }

  async #importsOf(file) {
    const known = this.#imports.get(file);
    if (known !== undefined) return known;
    const text = await readFile(join(this.#path, file), "utf8").catch(() => "");
    const source = lookThrough(text, join(root, file));
    const names = [
      ...source.matchAll(/(?<!\b(?:import|export) type \{[^{}]*\} )\b(?:from|import) ?\(?"(\.[^"]*)\.js"/g),
    ];
    const imports = names.map(([, name]) =>
      relative(this.#path, join(this.#path, dirname(file), `${name}.ts`)),
    );
    this.#imports.set(file, imports);
    return imports;
  }
}

function apart(test, file) {
  const mirrored = test.replace(/^test\/\w+\//, "src/").replace(/(?:\.property)?\.test\.ts$/, ".ts");
  return mirrored === file ? -1 : relative(dirname(mirrored), file).split("/").length;
}
