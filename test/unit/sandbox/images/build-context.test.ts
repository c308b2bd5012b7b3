import { chmod, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readBuildContext } from "../../../../src/sandbox/images/build-context.js";
import { type ImageDefinition, imageDefinitions } from "../../../../src/sandbox/images/definition.js";

let directory: string;
let definition: ImageDefinition;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-context-"));
  await cp(imageDefinitions.engine.directory, directory, { recursive: true });
  definition = { ...imageDefinitions.engine, directory };
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const tagOf = async (arch = "amd64") => (await readBuildContext(definition, arch)).tag;

describe("the tag of an image", () => {
  it("is the name and twelve hex digits, the same for the same content anywhere", async () => {
    const original = (await readBuildContext(imageDefinitions.engine, "amd64")).tag;
    expect(original).toMatch(/^brig\/test-engine:[0-9a-f]{12}$/);
    expect(await tagOf()).toBe(original);
  });

  it("changes with a file's content, its executable bit, its name, and the architecture", async () => {
    const tags = [await tagOf(), await tagOf("arm64")];
    await chmod(join(directory, "start-engine"), 0o644);
    tags.push(await tagOf());
    await writeFile(join(directory, "Dockerfile"), "FROM scratch\n");
    tags.push(await tagOf());
    definition = { ...definition, isPart: () => true };
    await writeFile(join(directory, "extra"), "");
    tags.push(await tagOf());
    await rm(join(directory, "extra"));
    await writeFile(join(directory, "other"), "");
    tags.push(await tagOf());
    expect(new Set(tags).size).toBe(tags.length);
  });

  it("changes with what the image is built on", async () => {
    const before = await tagOf();
    definition = { ...definition, parent: "base" };
    expect(await tagOf()).not.toBe(before);
  });

  it("does not depend on the umask of the checkout or on files that are no part of the build", async () => {
    const before = await tagOf();
    await chmod(join(directory, "Dockerfile"), 0o664);
    await chmod(join(directory, "start-engine"), 0o700);
    await writeFile(join(directory, "README.md"), "words");
    expect(await tagOf()).toBe(before);
  });
});

describe("the toolbox's build", () => {
  it("has the sources of its programs and nothing of their tests and documents", async () => {
    const { files } = await readBuildContext(imageDefinitions.toolbox, "amd64");
    const paths = files.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        "Dockerfile",
        "runner/main.c",
        "common/wire.h",
        "runner-files/main.c",
        "apply-patch/main.c",
        "attempts/main.c",
        "watch/main.c",
      ]),
    );
    expect(
      paths.filter(
        (path) =>
          !/^(Dockerfile|hosts|resolv\.conf|(runner|runner-files|common|apply-patch|attempts|watch)\/[^/]+\.[ch])$/.test(
            path,
          ),
      ),
    ).toEqual([]);
  });

  it("takes rg from the package for the engine's architecture", async () => {
    const [amd, arm] = await Promise.all(
      ["amd64", "arm64"].map((arch) => readBuildContext(imageDefinitions.toolbox, arch)),
    );
    expect(amd?.packages).toMatchObject([{ wanted: { name: "@vscode/ripgrep-linux-x64" } }]);
    expect(arm?.packages).toMatchObject([{ wanted: { name: "@vscode/ripgrep-linux-arm64" } }]);
    expect(amd?.tag).not.toBe(arm?.tag);
  });

  it("refuses an architecture that has no rg", async () => {
    const refused = readBuildContext(imageDefinitions.toolbox, "mips64");
    await expect(refused).rejects.toMatchObject({
      code: "image.build-failed",
      message: expect.stringMatching(/mips64/),
    });
  });
});
