import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { KeptWork } from "../../../../../../src/batch/runs/grading/kept-work.js";
import { temporaryDirectory } from "../../../../../support/sandbox.js";

const containerOf = (archives: Readonly<Record<string, number>>) => ({
  containerId: "c",
  engine: {
    readArchive: async (_: string, path: string) =>
      path in archives ? Readable.from([Buffer.alloc(archives[path] ?? 0)]) : null,
  },
});

describe("the work of an agent that is kept for a second grading", () => {
  it("lies in a folder of its own until it is not needed any more", async () => {
    await using directory = await temporaryDirectory();
    const folder = join(directory.path, "work");
    const roots = ["/app", "/srv/missing", "/srv/out"];
    const work = await KeptWork.keep(containerOf({ "/app": 10, "/srv/out": 20 }), { roots, folder });
    expect(work?.roots).toEqual(roots);
    expect((await readdir(folder)).toSorted()).toEqual(["0.tar", "2.tar"]);
    await work?.[Symbol.asyncDispose]();
    expect(await readdir(directory.path)).toEqual([]);
  });

  it("is not kept if it is too large together, and leaves nothing", async () => {
    await using directory = await temporaryDirectory();
    const options = { roots: ["/app", "/srv"], folder: join(directory.path, "work"), maxBytes: 25 };
    expect(await KeptWork.keep(containerOf({ "/app": 10, "/srv": 20 }), options)).toBeNull();
    expect(await readdir(directory.path)).toEqual([]);
    const whole = await KeptWork.keep(containerOf({ "/app": 10, "/srv": 15 }), options);
    expect(whole).not.toBeNull();
  });
});
