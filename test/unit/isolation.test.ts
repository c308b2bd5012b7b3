import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { allAttempts as probes } from "../../src/sandbox/attack/attempts.js";
import type { Assertion } from "../isolation/catalogue/assertion.js";
import { catalogue } from "../isolation/catalogue/catalogue.js";
import { notTested } from "../isolation/catalogue/not-tested.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** It may become smaller. To make it larger is to promise less. */
const MOST_NOT_TESTED = 14;

/** How many numbers each group has. An id is never used for something else, so a group only grows. */
const GROUPS = {
  A: 27,
  B: 22,
  C: 14,
  D: 10,
  E: 19,
  F: 22,
  G: 31,
  H: 15,
  J: 5,
  K: 10,
  L: 4,
  M: 5,
  N: 17,
  P: 6,
  S: 3,
};

/** What is wrong with one assertion. */
function faults([id, , ...proofs]: Assertion): string[] {
  return proofs.flatMap((proof) => {
    if (proof === "probed") return probes.some((probe) => probe.id === id) ? [] : [`${id}: no probe has it`];
    const [file, title] = proof;
    const path = join(root, "test", file);
    if (!existsSync(path)) return [`${id}: there is no ${file}`];
    return hasTitle(readFileSync(path, "utf8"), title) ? [] : [`${id}: ${file} has no test ${title}`];
  });
}

/** As a string of its own that is an argument or a constant, not as a part of another title or in a comment. Behind it may be why it is skipped. */
function hasTitle(source: string, title: string): boolean {
  const spelled = title
    .split("…")
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join("\\$\\{[^}]*\\}");
  return new RegExp(`[(,[=]\\s*(["\`])${spelled}(?: \\[[^\\]]*\\])?\\1`).test(source);
}

describe("the catalogue of isolation", () => {
  it("names tests that exist, for every assertion", () => {
    expect(catalogue.flatMap(faults)).toEqual([]);
  });

  it("has every id once, with a test or with the reason why it has none", () => {
    const expected = Object.entries(GROUPS).flatMap(([group, count]) =>
      Array.from({ length: count }, (_, at) => `${group}${at + 1}`),
    );
    const found = [...catalogue.map(([id]) => id), ...Object.keys(notTested)];
    expect(found.toSorted()).toEqual(expected.toSorted());
  });

  it("has no more assertions without a test than it had", () => {
    expect(Object.keys(notTested).length).toBeLessThanOrEqual(MOST_NOT_TESTED);
  });

  it("has every probe, and knows by id what is probed", () => {
    const probed = catalogue.filter(([, , ...proofs]) => proofs.includes("probed")).map(([id]) => id);
    expect([...new Set(probes.map(({ id }) => id))].toSorted()).toEqual(probed.toSorted());
  });

  it("would notice a test that is gone, renamed, or only mentioned", () => {
    expect(faults(["A1", "", ["unit/no-such.test.ts", "x"]])).toEqual([
      "A1: there is no unit/no-such.test.ts",
    ]);
    expect(faults(["Z1", "", "probed"])).toEqual(["Z1: no probe has it"]);
    expect(hasTitle('it("of a kind", () => {})', "of a kind")).toBe(true);
    expect(hasTitle('it(promised("contained.x", "of a kind"), () => {})', "of a kind")).toBe(true);
    expect(hasTitle(["it(`of $", "{mode}, seen`)"].join(""), "of …, seen")).toBe(true);
    for (const source of [
      'it("of a kind and more")',
      '// "of a kind"',
      "it(of a kind)",
      'it("of another kind")',
    ])
      expect(hasTitle(source, "of a kind")).toBe(false);
  });
});
