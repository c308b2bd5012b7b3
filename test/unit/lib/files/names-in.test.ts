import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { namesIn } from "../../../../src/lib/files/names-in.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

describe("the names in a directory", () => {
  it("are those of its files and directories", async () => {
    await using directory = await temporaryDirectory();
    await writeFile(join(directory.path, "a"), "");
    await mkdir(join(directory.path, "b"));
    expect((await namesIn(directory.path)).toSorted()).toEqual(["a", "b"]);
  });

  it("are none where there is no directory", async () => {
    await using directory = await temporaryDirectory();
    expect(await namesIn(join(directory.path, "missing"))).toEqual([]);
  });

  it("are not made up where a file is in place of the directory", async () => {
    await using directory = await temporaryDirectory();
    await writeFile(join(directory.path, "a"), "");
    await expect(namesIn(join(directory.path, "a"))).rejects.toThrow("ENOTDIR");
  });
});
