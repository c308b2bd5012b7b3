import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { realPaths } from "../../../../src/tools/patch/real-paths.js";
import { hostFiles } from "../../../support/host-files.js";

const root = realpathSync(mkdtempSync(join(tmpdir(), "brig-real-paths-")));
mkdirSync(join(root, "a/deep"), { recursive: true });
writeFileSync(join(root, "a/file"), "");
symlinkSync("a", join(root, "relative"));
symlinkSync(join(root, "relative/deep"), join(root, "absolute"));
symlinkSync("../file", join(root, "a/deep/up"));
symlinkSync("not-there/yet", join(root, "dangling"));
symlinkSync("circle", join(root, "circle"));

afterAll(() => {
  rmSync(root, { recursive: true });
});

const real = async (...names: string[]) =>
  (
    await realPaths(
      hostFiles,
      names.map((name) => join(root, name)),
    )
  ).map((path) => path.replace(`${root}/`, ""));

describe("where a path leads", () => {
  it.each([
    ["a/file", ["a/file"]],
    ["relative/file", ["relative", "a/file"]],
    ["absolute/up", ["absolute", "relative", "a/deep/up", "a/file"]],
    ["absolute/new/file", ["absolute", "relative", "a/deep/new/file"]],
    ["dangling", ["dangling", "not-there/yet"]],
    ["a/file/below", ["a/file/below"]],
    ["none/at/all", ["none/at/all"]],
  ])("%s leads to, and by way of, %j", async (name, expected) => {
    expect(await real(name)).toEqual(expected);
  });

  it("is told for several at once, and a circle has an end", async () => {
    expect(await real("a/file", "relative/file")).toEqual(["a/file", "relative"]);
    expect(await real("circle")).toEqual(["circle"]);
  });

  it("is what the kernel says", async () => {
    const paths = await realPaths(hostFiles, [join(root, "absolute/up")]);
    expect(paths).toContain(realpathSync(join(root, "absolute/up")));
  });
});
