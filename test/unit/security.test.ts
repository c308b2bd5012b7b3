import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { catalogue } from "../isolation/catalogue/catalogue.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(join(root, "SECURITY.md"), "utf8").replaceAll(
  // The tests are not in the package, so the page names their addresses.
  "](https://github.com/brig-sandbox/brig/blob/main/test/",
  "](test/",
);

/** Files of tests by the ids of the assertions that they prove. */
const files = new Map(
  catalogue.map(([id, , ...proofs]) => [
    id,
    proofs.map((proof) => `test/${proof === "probed" ? "isolation/probes.test.ts" : proof[0]}`),
  ]),
);

/** Each promise, with its ids and the files it names. */
function promisesIn(text: string): { promise: string; ids: string[]; named: string[] }[] {
  return [...text.matchAll(/^\| (?<promise>[^|]+) \| (?<ids>(?:[A-Z]\d+ ?)+) \| (?<links>[^|]+) \|$/gm)].map(
    ({ groups: { promise = "", ids = "", links = "" } = {} }) => ({
      promise,
      ids: ids.split(" "),
      named: [...links.matchAll(/\]\(([^)]+)\)/g)].map(([, path = ""]) => path),
    }),
  );
}

const promises = promisesIn(page);

it("every row of the promises is read here", () => {
  expect(promises.length).toBe(page.split("\n").filter((line) => /^\| .*\]\(test\//.test(line)).length);
  expect(promises.length).toBeGreaterThan(15);
});

it("every assertion that has a test stands behind one promise of SECURITY.md, and no other does", () => {
  expect(promises.flatMap(({ ids }) => ids).toSorted()).toEqual([...files.keys()].toSorted());
});

it("every file that a promise names proves one of its assertions", () => {
  for (const { promise, ids, named } of promises) {
    const proving = ids.flatMap((id) => files.get(id) ?? []);
    for (const path of named)
      expect({ promise, proving }).toMatchObject({ proving: expect.arrayContaining([path]) });
  }
});

it("would notice a promise without its line in the catalogue", () => {
  expect(promisesIn("| It flies. | A1 Z9 | [x](test/x.test.ts) |")).toEqual([
    { promise: "It flies.", ids: ["A1", "Z9"], named: ["test/x.test.ts"] },
  ]);
});
