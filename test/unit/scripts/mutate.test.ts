import { existsSync, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { mutantsOf as ofC } from "../../../scripts/mutate/c-mutants.js";
// @ts-expect-error -- a plain script without types
import { containerTests } from "../../../scripts/mutate/container-tests.js";
// @ts-expect-error -- a plain script without types
import { readEquivalent, withoutEquivalent } from "../../../scripts/mutate/equivalent.js";
// @ts-expect-error -- a plain script without types
import { applied } from "../../../scripts/mutate/mutant.js";
// @ts-expect-error -- a plain script without types
import { describeScores, interval } from "../../../scripts/mutate/report.js";
// @ts-expect-error -- a plain script without types
import { drawn } from "../../../scripts/mutate/sample.js";
// @ts-expect-error -- a plain script without types
import { mutantsOf as ofTypeScript } from "../../../scripts/mutate/source-mutants.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));

interface Fault {
  line: number;
  kind: string;
  before: string;
}

const changes = (found: readonly object[], source: string) =>
  found.map((mutant) => applied(source, mutant).trim());

describe("faults of a TypeScript file", () => {
  it("are in what runs, one at a time", () => {
    const source = "const a: 1 | 2 = b < 3 && !c;";
    expect(changes(ofTypeScript("a.ts", source), source)).toEqual([
      "const a: 1 | 2 = b < 3 || !c;",
      "const a: 1 | 2 = b <= 3 && !c;",
      "const a: 1 | 2 = b < 3 && c;",
    ]);
  });

  it("leave statements, results and errors out, and know both ways of a condition", () => {
    const source = 'import x from "y";\nif (a) b();\nelse throw c;\nfunction f() { return d; }';
    const rest = (text: string) => source.replace("if (a) b();\nelse throw c;", text);
    expect(changes(ofTypeScript("a.ts", source), source)).toEqual([
      rest("if (true) b();\nelse throw c;"),
      rest("if (false) b();\nelse throw c;"),
      rest("if (a) ;\nelse throw c;"),
      rest("if (a) b();\nelse ;"),
      source.replace("return d;", "return undefined;"),
    ]);
  });

  it("leave sentences for people as they are, and empty words that code compares", () => {
    const found = ofTypeScript("a.ts", 'const a = b("does not exist", "policy.invalid");');
    expect(found.map(({ kind }: Fault) => kind)).toEqual(['"policy.invalid" is empty']);
  });

  it("say in which line they are", () => {
    expect(ofTypeScript("a.ts", "const a = 1;\n\nconst b = true;").map(({ line }: Fault) => line)).toEqual([
      1, 3,
    ]);
  });
});

describe("faults of a C file", () => {
  it("are in the bodies of functions, not in comments, texts, pointers and declarations", () => {
    const source =
      '#define A 1\nint *f(char *p) {\n    char *q = p; /* a < b */\n    return p && *q ? "1 < 2" : 0;\n}';
    expect(ofC("a.c", source).map(({ line, kind }: Fault) => `${line}: ${kind}`)).toEqual([
      "4: && becomes ||",
      "4: 0 becomes one more",
    ]);
  });

  it("are without the sign of a number, instead of another negative one", () => {
    const source = "int f(int a) { b = -1; if (a == -1 && g(c, -2)) return -3; return a - 1; }";
    const found = ofC("a.c", source).filter(({ kind }: Fault) => /sign|one more|- becomes/.test(kind));
    expect(changes(found, source)).toEqual([
      source.replace("b = -1", "b = 1"),
      source.replace("== -1", "== 1"),
      source.replace("-2", "2"),
      source.replace("-3", "3"),
      source.replace("a - 1", "a + 1"),
      source.replace("a - 1", "a - 2"),
    ]);
  });

  it("leave the sizes of buffers as they are, and only those", () => {
    const source = "void f(void) { char path[64], name[32]; uint8_t head[3] = {0}; b = path[17]; }";
    const found = ofC("a.c", source).filter(({ kind }: Fault) => kind.includes("one more"));
    expect(found.map(({ kind }: Fault) => kind)).toEqual([
      "3 becomes one more",
      "0 becomes one more",
      "17 becomes one more",
    ]);
  });

  it("leave out whole statements, also after a condition, but nothing from the head of a loop", () => {
    const source = "void f(void) { if (a) b(c); for (i = x; y; i = z) d = e; }";
    const found = ofC("a.c", source).filter(({ kind }: Fault) => kind.includes("left out"));
    expect(found.map(({ before }: Fault) => before)).toEqual(["b(c);", "d = e;"]);
    const [, ...conditions] = ofC("a.c", source).filter(({ kind }: Fault) => kind.includes("condition"));
    expect(conditions).toHaveLength(1);
  });
});

describe("faults that change nothing observable", () => {
  const source = "const a = 1;\nconst b = 1;\nconst a = 1;";
  const faults = ofTypeScript("a.ts", source);
  const entry = { file: "a.ts", line: "const a = 1;", kind: "1 becomes 2", reason: "nobody reads it" };
  const split = (equivalent: object[]) => withoutEquivalent(faults, { equivalent, source: () => source });
  const linesOf = (found: readonly Fault[]) => found.map(({ line }) => line);

  it("are left out one at a time, also where the same text is in several lines", () => {
    expect(linesOf(split([]).others)).toEqual([1, 2, 3]);
    expect(linesOf(split([entry]).others)).toEqual([2, 3]);
    expect(linesOf(split([{ ...entry, nth: 2 }]).others)).toEqual([1, 2]);
  });

  it("have keys by which a fault is known again in another line", () => {
    const moved = `\n${source}`;
    const keys = (text: string) =>
      withoutEquivalent(ofTypeScript("a.ts", text), { equivalent: [], source: () => text }).others.map(
        ({ key }: { key: string }) => key,
      );
    expect(keys(moved)).toEqual(keys(source));
    expect(new Set(keys(source)).size).toBe(3);
  });

  it("are reported when the file has no such fault any more", () => {
    const stale = [
      { ...entry, nth: 3 },
      { ...entry, line: "const c = 1;" },
      { ...entry, kind: "1 becomes 3" },
    ];
    expect(split([entry, ...stale]).stale).toEqual(stale);
    expect(split(stale).others).toHaveLength(3);
  });

  it("are listed with a reason each, and fit a fault of a file", async () => {
    const listed = (await readEquivalent()) as (typeof entry)[];
    // A longer list hides more: change this number on purpose only.
    expect(listed).toHaveLength(60);
    for (const { file, reason, ...rest } of listed) {
      expect(reason).toMatch(/^[A-Z].{20,}\.$/s);
      const text = readFileSync(`${root}/${file}`, "utf8");
      const found = file.endsWith(".c") ? ofC(file, text) : ofTypeScript(file, text);
      const { stale } = withoutEquivalent(found, { equivalent: [{ file, ...rest }], source: () => text });
      expect(stale).toEqual([]);
    }
  });
});

describe("the tests in containers for a fault", () => {
  const places = [
    "src/sandbox/docker",
    "src/sandbox/policy",
    "src/sandbox",
    "images/toolbox/runner",
    "images/toolbox/runner-files",
    "images/toolbox/common",
  ];
  const filesIn = async (place: string) =>
    (await readdir(`${root}/${place}`, { recursive: true }))
      .filter(
        (name) => name.endsWith(place.startsWith("images/") ? ".c" : ".ts") && !name.startsWith("test/"),
      )
      .map((name) => `${place}/${name}`);

  it.each(places)("are there, some for each file, and each named once: %s", async (place) => {
    for (const file of await filesIn(place)) {
      const tests: string[] = containerTests(file).flat();
      expect(tests.filter((test) => !existsSync(`${root}/${test}`))).toEqual([]);
      expect(tests.length, file).toBeGreaterThan(0);
      expect(new Set(tests).size).toBe(tests.length);
    }
  });

  it("leave the long ones of the runner to the end", () => {
    const long = "test/docker/sandbox/ended.test.ts";
    expect(containerTests("images/toolbox/common/wire.c").at(-1)).toContain(long);
    expect(containerTests("images/toolbox/common/wire.c")[0]).not.toContain(long);
    expect(containerTests("images/toolbox/runner/causes.c")[1]).toEqual([
      "test/docker/sandbox/causes.test.ts",
      "test/docker/sandbox/silence.test.ts",
    ]);
  });

  it("begin with those that use the file most", () => {
    const first = (file: string) => containerTests(file)[0][0];
    expect(first("images/toolbox/runner-files/commit-step.c")).toBe(
      "test/docker/sandbox/tree/commit.test.ts",
    );
    expect(first("images/toolbox/runner-files/committed.c")).toBe("test/docker/sandbox/results.test.ts");
    expect(first("src/sandbox/sweep.ts")).toBe("test/docker/sweep.test.ts");
    expect(first("src/sandbox/docker/podman/podman-body.ts")).toBe("test/docker/podman.test.ts");
    expect(first("src/sandbox/docker/calls/tar.ts")).toBe("test/docker/engine.test.ts");
  });
});

it("an octal number of C becomes one more as such", () => {
  const source = "void f(void) { x = 0777; }";
  expect(changes(ofC("a.c", source), source)).toContain("void f(void) { x = 01000; }");
});

describe("faults that would be the same", () => {
  it("as another one are left out: a bound that is one more, and the other operator", () => {
    const kinds = (found: readonly Fault[]) => found.map(({ kind }) => kind);
    expect(kinds(ofTypeScript("a.ts", "const a = b >= 3;"))).toEqual([">= becomes >"]);
    expect(kinds(ofTypeScript("a.ts", "const a = b > 3;"))).toEqual(["> becomes >=", "3 becomes 4"]);
    expect(kinds(ofC("a.c", "void f(void) { x = n < 3; }"))).toContain("< becomes <=");
    expect(kinds(ofC("a.c", "void f(void) { x = n < 3; }"))).not.toContain("3 becomes one more");
    expect(kinds(ofC("a.c", "void f(void) { x = n < 3 + m; }"))).toContain("3 becomes one more");
  });

  it("as none are left out: in C, whether a descriptor is below 0 or not above it", () => {
    const operators = (text: string) =>
      ofC("a.c", `void f(void) { ${text} }`).filter(({ kind }: Fault) => kind.startsWith("<"));
    expect(operators("x = fd < 0;")).toEqual([]);
    expect(operators("x = a->out_fd < 0;")).toEqual([]);
    expect(operators("x = fd < 1;")).toHaveLength(1);
    expect(operators("x = n < 0;")).toHaveLength(1);
  });
});

describe("a sample of faults", () => {
  const all = Array.from({ length: 50 }, (_, index) => ({ key: `fault ${index}` }));

  it("is the same for the same seed, another for another, and has nothing twice", () => {
    const first = drawn(all, { count: 20, seed: 1 });
    expect(drawn(all, { count: 20, seed: 1 })).toEqual(first);
    expect(drawn(all, { count: 20, seed: 2 })).not.toEqual(first);
    expect(new Set(first).size).toBe(20);
  });

  it("keeps all but what is not there any more, and takes the next in its place", () => {
    const first: typeof all = drawn(all, { count: 20, seed: 1 });
    const others = all.filter((one) => one !== first[3]).reverse();
    const second = drawn(others, { count: 20, seed: 1 });
    expect(second.slice(0, 19)).toEqual(first.filter((one) => one !== first[3]));
    expect(drawn(all, { count: 10, seed: 1 })).toEqual(first.slice(0, 10));
  });

  it("is all of them where fewer are there than asked for", () => {
    expect(drawn(all, { count: 0, seed: 1 })).toEqual(all);
    expect(drawn(all, { count: 100, seed: 1 })).toEqual(all);
  });

  it("has an interval that is narrower with more samples, and never outside of 0 and 1", () => {
    const [low, high] = interval(90, 100);
    expect([low, high]).toEqual([expect.closeTo(0.826, 3), expect.closeTo(0.945, 3)]);
    expect(interval(9, 10)[0]).toBeLessThan(low);
    expect(interval(0, 0)).toEqual([0, 1]);
    expect(interval(5, 5)[1]).toBe(1);
  });

  it("counts those that end in no time as noticed, and those that do not compile not at all", () => {
    const results = ["killed", "timed-out", "survived", "invalid"].map((outcome) => ({
      place: "src/a",
      outcome,
    }));
    expect(describeScores(results)).toMatch(/^src\/a: 2 of 3 noticed, 66\.7 % \(95 %: 20\.8 % – 93\.9 %\)$/m);
  });
});
