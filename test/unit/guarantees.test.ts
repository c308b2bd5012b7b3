import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { findGaps, guarantees } from "../guarantees.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

it("every promise stands in SECURITY.md and is proved by a test that cites it", () => {
  const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  const tests = files
    .filter((file) => file.endsWith(".test.ts") && !file.endsWith("guarantees.test.ts"))
    .map((file) => readFileSync(join(root, "test", file), "utf8"));
  const page = readFileSync(join(root, "SECURITY.md"), "utf8");
  expect(findGaps(guarantees, { page, tests })).toEqual([]);
});

it("what the README promises is promised word for word, each with a link", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [, list = ""] = /^## What is promised\n\n((?:- .*\n)+)/m.exec(readme) ?? [];
  const promises = list.trim().split("\n");
  expect(promises).toHaveLength(5);
  for (const promise of promises) {
    const [, sentence, link] = /^- (.*\.) \(\[[^\]]+\]\(([^)]+)\)\)$/.exec(promise) ?? [];
    expect(guarantees.map((one) => one.sentence)).toContain(sentence);
    expect(link).toBeDefined();
  }
});

it("whatever contains is attempted as root and as another user", () => {
  const files = readdirSync(join(root, "test/docker"), { recursive: true, encoding: "utf8" });
  const attempting = files
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => ({ file, source: readFileSync(join(root, "test/docker", file), "utf8") }))
    .filter(({ source }) => /\bpromised\(\s*"contained\./.test(source));
  expect(attempting.length).toBeGreaterThan(5);
  const asOneUser = attempting.filter(
    ({ source }) => !/\bforEachHostUser\(|\(HOST_USERS\)|of HOST_USERS\)/.test(source),
  );
  expect(asOneUser.map(({ file }) => file)).toEqual([]);
});

describe("findGaps", () => {
  const promise = { id: "contained.read-only", sentence: "not a byte of the workspace changes" };
  const page = "- In read-only mode not a byte of\n  the workspace changes.";
  const tests = ['it(promised(\n  "contained.read-only", "a write fails"), () => {});'];

  it("finds nothing where the promise is made and proved", () => {
    expect(findGaps([promise], { page, tests })).toEqual([]);
  });

  it("names a promise that no test cites", () => {
    const others = ['it(promised("contained.read-only.more", "x"))', '// "contained.read-only"'];
    expect(findGaps([promise], { page, tests: others })).toEqual([expect.stringMatching(/no test cites it/)]);
  });

  it("names a promise that SECURITY.md does not make", () => {
    expect(findGaps([promise], { page: "", tests })).toEqual([
      expect.stringMatching(/SECURITY\.md does not say/),
    ]);
  });

  it("names an id that is given twice", () => {
    expect(findGaps([promise, promise], { page, tests })).toEqual([
      "contained.read-only: the id is given twice",
    ]);
  });
});
