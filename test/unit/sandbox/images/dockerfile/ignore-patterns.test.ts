import { describe, expect, it } from "vitest";
import { parseIgnorePatterns } from "../../../../../src/sandbox/images/dockerfile/context-files.js";

/** Those of the paths that would be left out. */
function ignored(text: string, paths: string[]): string[] {
  const patterns = parseIgnorePatterns(text, ["Dockerfile"]);
  return paths.filter((path) => patterns.ignores(path));
}

describe("patterns of a .dockerignore file", () => {
  it("begin at the context's root, and one for a directory is for all that is in it", () => {
    const paths = ["build", "build/a", "build/x/y", "src/build", "buildings"];
    expect(ignored("build", paths)).toEqual(["build", "build/a", "build/x/y"]);
    expect(ignored("/build/", paths)).toEqual(["build", "build/a", "build/x/y"]);
    expect(ignored("./src/../build", paths)).toEqual(["build", "build/a", "build/x/y"]);
  });

  it("match no slash with an asterisk or a question mark, and any number of directories with two asterisks", () => {
    const paths = ["a.log", "x/a.log", "x/y/a.log", "alog"];
    expect(ignored("*.log", paths)).toEqual(["a.log"]);
    expect(ignored("*/*.log", paths)).toEqual(["x/a.log"]);
    expect(ignored("**/*.log", paths)).toEqual(["a.log", "x/a.log", "x/y/a.log"]);
    expect(ignored("x/**", [...paths, "x"])).toEqual(["x/a.log", "x/y/a.log"]);
    expect(ignored("x/**/a.log", paths)).toEqual(["x/a.log", "x/y/a.log"]);
    expect(ignored("a?log", paths)).toEqual(["a.log"]);
  });

  it("decide in order: the last one that matches counts", () => {
    const paths = ["docs/a.md", "docs/README.md", "docs/x/README.md"];
    expect(ignored("docs\n!docs/README.md", paths)).toEqual(["docs/a.md", "docs/x/README.md"]);
    expect(ignored("docs\n!**/README.md", paths)).toEqual(["docs/a.md"]);
    expect(ignored("!docs/README.md\ndocs", paths)).toEqual(paths);
    expect(ignored("*\n! docs", paths)).toEqual([]);
  });

  it("never leave out what has to be sent", () => {
    expect(ignored("*", ["Dockerfile", "other"])).toEqual(["other"]);
    expect(ignored("Dockerfile\n**", ["Dockerfile", "x/Dockerfile"])).toEqual(["x/Dockerfile"]);
  });

  it("may have classes and escapes, and nothing else of regular expressions", () => {
    const paths = ["a1", "ab", "a+b", "a(1)", "constructor", "a{1}", "x|y", "a*", "a^", "A1"];
    expect(ignored("a[0-9]", paths)).toEqual(["a1"]);
    expect(ignored("a[^0-9]", paths)).toEqual(["ab", "a*", "a^"]);
    expect(ignored("a+b\na(1)\na{1}\nx|y\na^", paths)).toEqual(["a+b", "a(1)", "a{1}", "x|y", "a^"]);
    expect(ignored("a\\*", paths)).toEqual(["a*"]);
    expect(ignored("constructor", paths)).toEqual(["constructor"]);
  });

  it("are trimmed, and comments begin in the first column", () => {
    expect(ignored("\uFEFF# a\r\n  b \r\n\r\n #c\r\n.\n/", ["a", "b", "c", "#c"])).toEqual(["b", "#c"]);
  });

  it("that cannot be read are refused by line", () => {
    for (const [text, line] of [
      ["ok\na[", 2],
      ["!", 1],
    ] as const)
      expect(() => parseIgnorePatterns(text, [])).toThrow(
        `line ${line} of .dockerignore is no valid pattern`,
      );
  });

  it("say whether a directory that is ignored can contain files that are not", () => {
    expect(parseIgnorePatterns("a", []).hasExceptions).toBe(false);
    expect(parseIgnorePatterns("a\n!a/b", []).hasExceptions).toBe(true);
  });
});
