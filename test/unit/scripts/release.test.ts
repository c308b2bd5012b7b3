import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
// @ts-expect-error: the scripts have no types
import * as checks from "../../../scripts/release/checks.js";
import { temporaryDirectory } from "../../support/sandbox.js";

const manifest = {
  ...{ name: "brigbox", version: "1.2.3", license: "Apache-2.0", files: ["dist"] },
  repository: { url: "git+https://github.com/brig-sandbox/brig.git" },
  publishConfig: { access: "public", provenance: true },
};
const lockOf = (version: string) => ({ version, packages: { "": { version } } });

describe("a release", () => {
  it("has one version, in the lock file too", () => {
    expect(checks.checkVersion(manifest, lockOf("1.2.3"))).toBe("1.2.3");
    expect(() => checks.checkVersion(manifest, lockOf("1.2.2"))).toThrow(/package-lock\.json has 1\.2\.2/);
    expect(() => checks.checkVersion({ version: "latest" }, lockOf("latest"))).toThrow(/not a version/);
  });

  it("has an entry with a date and a change in the changelog", () => {
    const text =
      "# Changelog\n\n## [Unreleased]\n\n- soon\n\n## [1.2.3] - 2026-11-28\n\n### Fixed\n\n- a fault\n\n## [1.2.2] - x\n";
    expect(checks.changelogEntry(text, "1.2.3")).toEqual({
      ...{ date: "2026-11-28", text: "### Fixed\n\n- a fault" },
    });
    expect(() => checks.changelogEntry(text, "1.3.0")).toThrow(/no entry for 1\.3\.0/);
    expect(() => checks.changelogEntry(text, "1.2.2")).toThrow(/has no date/);
    expect(() => checks.changelogEntry("## [1.2.3] - 2026-13-28\n\n- a\n", "1.2.3")).toThrow(/has no date/);
    expect(() => checks.changelogEntry("## [1.2.3] - 2026-11-28\n\n## [1.2.2]\n\n- a\n", "1.2.3")).toThrow(
      /says nothing/,
    );
  });

  it("is published for everybody, and with provenance", () => {
    expect(checks.checkSettings(manifest)).toEqual({ access: "public", provenance: true });
    expect(() => checks.checkSettings({ ...manifest, publishConfig: { access: "public" } })).toThrow(
      /lacks provenance/,
    );
    expect(() => checks.checkSettings({ ...manifest, publishConfig: undefined })).toThrow(
      /access and provenance/,
    );
    expect(() => checks.checkSettings({ ...manifest, private: true })).toThrow(/private/);
    expect(() => checks.checkSettings({ ...manifest, repository: undefined })).toThrow(/no repository/);
  });

  it("names the licence of each package whose code is in a bundle, in the version that is", async () => {
    await using folder = await temporaryDirectory();
    const root = folder.path;
    for (const [home, name] of [
      ["node_modules/one", "one"],
      ["node_modules/@some/two/node_modules/three", "three"],
    ] as const) {
      await mkdir(join(root, home), { recursive: true });
      const described = { name, version: "1.0.0", license: "MIT" };
      await writeFile(join(root, home, "package.json"), JSON.stringify(described));
    }
    await mkdir(join(root, "dist/library"), { recursive: true });
    const licences = (text: string) => writeFile(join(root, "dist/third-party-licences.txt"), text);
    await licences("one 1.0.0 (MIT)\n\ntext\n");
    await expect(checks.checkLicences(root)).rejects.toThrow(/no bundles/);
    const sources = [
      "../../src/a.ts",
      "../../node_modules/one/a.js",
      "../../node_modules/@some/two/node_modules/three/b.js",
    ];
    await writeFile(join(root, "dist/library/chunk.js.map"), JSON.stringify({ sources }));
    await expect(checks.checkLicences(root)).rejects.toThrow(/does not name three 1\.0\.0$/);
    await licences("one 1.0.0 (MIT)\n\ntext\n\nthree 1.0.0 (MIT)\n\ntext\n");
    expect(await checks.checkLicences(root)).toBe(2);
  });
});
