import { describe, expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { Source } from "../../../scripts/executed/touched.js";
// @ts-expect-error -- a plain script without types
import { touchedTests } from "../../../scripts/executed/touched-tests.js";

/**
 * The lines of files (`a` is src/a.ts) of which something runs that a change touches: each place of a file is a test of its own here, named after
 * the line that it begins in. A file that is null afterwards was removed.
 */
function touched(before: Record<string, string>, after: Record<string, string | null>): string[] {
  const path = (name: string) => `src/${name}.ts`;
  const sources = new Map(
    Object.entries(before).map(([name, text]) => [path(name), new Source(path(name), text)]),
  );
  const now = (file: string) => {
    const text = after[file.slice("src/".length, -".ts".length)];
    return text === null || text === undefined ? null : new Source(file, text);
  };
  const executed = {
    ofPlaces: (file: string, indexes: number[]) =>
      indexes.map((index) => {
        const { text, places } = sources.get(file);
        return text.slice(places[index].start).split("\n")[0].trim();
      }),
  };
  const found = touchedTests(executed, {
    sources: {
      before: (file: string) => sources.get(file) ?? null,
      after: now,
      mentions: (file: string, text: string) => before[file.slice(4, -3)]?.includes(text),
    },
    changed: Object.keys(after).map(path),
    files: [...sources.keys()],
  });
  return [...(found as Set<string>)];
}

const source = `import { z } from "./z.js";
/** A limit. */
const limit = 5;
export const names = ["x", "y"];
export function f(a: number) {
  b();
  if (a) {
    c(limit);
  }
  return () => d(a);
}
function g() {
  h(\`// no comment
  in it\`);
}
export class K {
  #size = 1;
  m() {
    k();
  }
}
`;

/** After a change of that source alone. */
const changed = (from: string, to: string) => {
  expect(source).toContain(from);
  return touched({ a: source }, { a: source.replace(from, to) });
};

describe("a change touches", () => {
  it.for<[string, string, string, string[]]>([
    ["nothing if it is of a comment", "/** A limit. */", "// Another one,\n// in two lines.", []],
    ["nothing if it is of a type", "a: number", "a: string | undefined", []],
    [
      "nothing if it is of what is imported",
      'import { z } from "./z.js"',
      'import { y, z } from "./y.js"',
      [],
    ],
    ["nothing if it is of indentation", "  b();", "      b();", []],
    ["a line that is other", "c(limit)", "c(limit + 1)", ["c(limit);"]],
    ["a line of a string that looks like a comment", "// no comment", "// a comment", ["h(`// no comment"]],
    ["a value that is returned", "d(a)", "d(a + 1)", ["return () => d(a);"]],
    ["what stands before and after a new line", "  b();\n", "  b();\n  x();\n", ["b();", "if (a) {"]],
    [
      "the whole function for its first line",
      "a: number)",
      "a = 1)",
      ["b();", "if (a) {", "c(limit);", "return () => d(a);", "d(a);"],
    ],
    ["whoever uses a constant", "limit = 5", "limit = 6", ["c(limit);"]],
    ["a method", "k();", "l();", ["k();"]],
    ["all methods for a field", "#size = 1", "#size = 2", ["k();"]],
    ["what has been removed", "  h(`// no comment\n  in it`);\n", "", ["h(`// no comment"]],
    ["a condition", "if (a)", "if (!a)", ["if (a) {"]],
  ])("%s", ([, from, to, expected]) => {
    expect(changed(from, to)).toEqual(expect.arrayContaining(expected));
    expect(changed(from, to)).toHaveLength(expected.length);
  });

  it("nothing if a function or a file is only added, which something else has to use", () => {
    expect(touched({ a: source }, { a: `${source}export function n() { o(); }\n`, b: "x();" })).toEqual([]);
  });

  it("all of a file that was removed, and its users", () => {
    const user = 'import { f } from "./a.js";\nfunction u() {\n  f(1);\n}\nfunction v() {\n  w();\n}\n';
    const lines = touched({ a: source, u: user }, { a: null });
    expect(lines).toEqual(expect.arrayContaining(["b();", "c(limit);", "k();", "f(1);"]));
    expect(lines).not.toContain("w();");
  });
});

describe("a constant that has changed touches", () => {
  const after = { a: source.replace('["x", "y"]', '["x"]') };

  it.for<[string, string, string[]]>([
    ["who imports it", 'import { names } from "./a.js";\nfunction u() {\n  v(names);\n}', ["v(names);"]],
    [
      "who imports it under another name",
      'import { names as all } from "./a.js";\nconst u = () => all.length;',
      ["all.length;"],
    ],
    [
      "who imports everything",
      'import * as a from "./a.js";\nfunction u() {\n  v(a.names);\n}',
      ["v(a.names);"],
    ],
    [
      "who loads the file later",
      'async function u() {\n  const a = await import("./a.js");\n}',
      ['const a = await import("./a.js");'],
    ],
    [
      "who computes a constant from it",
      'import { names } from "./a.js";\nconst own = names.map(String);\nfunction u() {\n  v(own);\n}',
      ["v(own);"],
    ],
    [
      "nobody who has a type of it",
      'import { names } from "./a.js";\nfunction u(x: typeof names) {\n  v(x);\n}',
      [],
    ],
    [
      "nobody who has a property of that name",
      'import { f } from "./a.js";\nfunction u(x) {\n  v(x.names, { names: 1 });\n}',
      [],
    ],
  ])("%s", ([, user, expected]) => {
    expect(touched({ a: source, u: user }, after)).toEqual(expected);
  });

  it.for([
    'export { names } from "./a.js";',
    'export { names as names } from "./a.js";',
    'export * from "./a.js";',
    'import { names } from "./a.js";\nexport { names };',
  ])("who gets it from a file that passes it on: %s", (between) => {
    const user = 'import { names } from "./p.js";\nfunction u() {\n  v(names);\n}';
    expect(touched({ a: source, p: between, u: user }, after)).toEqual(["v(names);"]);
  });
});
