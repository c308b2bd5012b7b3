import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
// @ts-expect-error -- a plain script without types
import { contentKey, ExecutedTests, placeOf } from "../../../scripts/executed/executed-tests.js";
// @ts-expect-error -- a plain script without types
import { lineAt, withMarks } from "../../../scripts/executed/marks.js";

describe("marks", () => {
  const marked = (source: string): string => withMarks(source, (index: number) => `m(${index})`);

  it.for([
    ["statements of functions only", "a();\nfunction f() { b(); }", "a();\nfunction f() { m(0);b(); }"],
    ["the value of an arrow", "const f = () => ({ a });", "const f = () => ((m(0),({ a })));"],
    ["both chosen values", "() => (a ? b : c)", "() => ((m(0),(a ? (m(1),(b)) : (m(2),(c)))))"],
    [
      "a statement without braces",
      "() => { if (a) b();\nelse c(); }",
      "() => { m(0);if (a) {m(1);b();}\nelse {m(2);c();} }",
    ],
    ["what a loop repeats", "() => { for (;;) a(); }", "() => { m(0);for (;;) {m(1);a();} }"],
    [
      "the statements of a case",
      "() => { switch (a) { case 1: b(); } }",
      "() => { m(0);switch (a) { case 1: m(1);b(); } }",
    ],
    [
      "no types and no declared functions",
      "() => { type A = 1; function g() {} }",
      "() => { type A = 1; function g() {} }",
    ],
  ])("go before %s, in the same line", ([, source, expected]) => {
    expect(marked(source ?? "")).toBe(expected);
  });

  it("do not change what code does", () => {
    const source =
      'const f = (n) => { let s = ""; for (const i of [1, 2, 3]) if (i % 2) s += i; else if (n) s += n(i); switch (s) { case "1x3": return { s }; default: return () => ({ other: s }); } };';
    const executed = new Set<number>();
    const run = (text: string) =>
      new Function("m", `${text} return f((i) => "x");`)((id: number) => executed.add(id));
    expect(run(marked(source))).toEqual(run(source));
    expect(executed.size).toBeGreaterThan(4);
  });

  it("know a place by the text of its line", () => {
    expect(lineAt("a\n  b c\nd", 6)).toBe("b c");
    expect(lineAt("a", 0)).toBe("a");
  });
});

describe("the tests for a fault", () => {
  const source = "const a = 1;\nfunction f() {\n  b();\n  c();\n}\n";
  const faultAt = (text: string) => ({ file: "src/a.ts", start: source.indexOf(text) });
  const test = (name: string) => `test/${name}.test.ts`;

  /** Test files with these names, and which of the two places of the source each executes; null for one of which nothing is noted. */
  async function noted(
    files: Record<string, number[] | null>,
    { text = source, loaded = [] as number[] } = {},
  ) {
    const path = await mkdtemp(join(tmpdir(), "brig-noted-"));
    onTestFinished(() => rm(path, { recursive: true }));
    await mkdir(join(path, "test"));
    const tests: Record<string, object> = {};
    for (const [index, [name, places]] of Object.entries(files).entries()) {
      await writeFile(join(path, test(name)), name);
      if (places !== null) tests[test(name)] = { content: contentKey(name), seconds: 9 - index };
    }
    const places = [0, 1].map((place) =>
      Object.keys(files)
        .filter((name) => files[name]?.includes(place))
        .map(test),
    );
    const executed = new ExecutedTests({
      tests,
      files: { "src/a.ts": { content: contentKey(text), places, loaded } },
    });
    const may = async (at: string) =>
      (await executed.mayExecute(Object.keys(files).map(test), {
        mutant: faultAt(at),
        source,
        path,
      })) as string[];
    const executing = (at: string) => executed.executing(faultAt(at), source) as string[];
    return { path, may, executing };
  }

  it("are those of the innermost statement, or of none", () => {
    expect(placeOf(faultAt("c()"), source).index).toBe(1);
    expect(placeOf(faultAt("1"), source).index).toBeNull();
  });

  it("are all but the ones that are known not to execute it", async () => {
    const { may } = await noted({ "does-not": [0], does: [0, 1], "uses-none": [], "is-new": null });
    expect(await may("c()")).toEqual([test("does"), test("is-new")]);
  });

  it("are all that execute anything of the file if it has changed", async () => {
    const { may } = await noted({ first: [0], none: [], second: [1] }, { text: "older" });
    expect(await may("c()")).toEqual([test("first"), test("second")]);
  });

  it("count again as unknown when they have been changed", async () => {
    const { path, may } = await noted({ one: [] });
    await writeFile(join(path, test("one")), "changed");
    expect(await may("c()")).toEqual([test("one")]);
  });

  it("are all for what is run by loading it", async () => {
    const { may } = await noted({ first: [1], second: [] }, { loaded: [1] });
    expect(await may("c()")).toEqual([test("first"), test("second")]);
    expect(await may("1")).toEqual([test("first"), test("second")]);
    expect(await may("b()")).toEqual([]);
  });

  it("with containers are those that execute it, the short ones first", async () => {
    const { executing } = await noted({ long: [1], short: [1], other: [0] });
    expect(executing("c()")).toEqual([test("short"), test("long")]);
    expect(executing("1")).toEqual([test("other"), test("short"), test("long")]);
  });
});
