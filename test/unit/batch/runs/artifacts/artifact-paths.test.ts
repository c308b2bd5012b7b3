import { describe, expect, it } from "vitest";
import {
  declaredArtifacts,
  isReserved,
  splitName,
} from "../../../../../src/batch/runs/artifacts/artifact-paths.js";

const artifact = (source: string, destination: string | null = null, exclude: string[] = []) => ({
  source,
  destination,
  exclude,
});

describe("the paths of artifacts", () => {
  it("are absolute in the container, and each has its own place on the host", () => {
    const declared = declaredArtifacts(
      [artifact("out"), artifact("/srv/out"), artifact("/a/b", "x/y")],
      "/app",
    );
    expect(declared.map(({ source, destination }) => [source, destination])).toEqual([
      ["/logs/artifacts", "published"],
      ["/app/out", "out"],
      ["/srv/out", "artifact-2"],
      ["/a/b", "x/y"],
    ]);
  });

  it.each(["../up", "/etc/passwd", "a/../../b", "", "a\nb", "a\u202eb"])(
    "never leave the folder: %j",
    (destination) => {
      const [, declared] = declaredArtifacts([artifact("/out", destination)], "/");
      expect(declared?.destination).toBe("artifact-1");
    },
  );

  it("that the verifier owns cannot be artifacts", () => {
    for (const path of [
      "/",
      "/logs/verifier",
      "/logs/verifier/reward.txt",
      "/tests/test.sh",
      "/proc/1",
      "/.brig",
    ])
      expect(isReserved(path)).toBe(true);
    for (const path of ["/logs", "/logs/verifier2", "/testsuite", "/app"])
      expect(isReserved(path)).toBe(false);
  });

  it("have names that are safe on the host, or are not taken", () => {
    expect(splitName("a/b c/ü.txt/")).toEqual(["a", "b c", "ü.txt"]);
    for (const name of ["..", "a/..", "./a", "/a", "a//b", "a\\b", "a\u001b[2J", "a\ufffd", "x".repeat(256)])
      expect(splitName(name)).toBeNull();
    expect(splitName("a/".repeat(65))).toBeNull();
  });
});

describe("what an artifact leaves out", () => {
  it.each([
    ["*.pyc", "a/b/c.pyc", true],
    ["*.pyc", "a/c.pyc.txt", false],
    ["node_modules", "x/node_modules/y/z.js", true],
    ["node_modules", "node_modules2", false],
    ["build/*", "build/x/y", true],
    ["build/*", "src/build/x", false],
    ["**/cache", "a/b/cache/d", true],
    ["a?c", "abc", true],
    ["a.c", "abc", false],
  ])("%s and %s: %s", (pattern, path, isLeftOut) => {
    const [, declared] = declaredArtifacts([artifact("/app", null, [pattern])], "/");
    expect(declared?.excludes(path)).toBe(isLeftOut);
  });
});
