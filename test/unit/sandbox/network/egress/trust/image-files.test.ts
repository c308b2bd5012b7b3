import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../../../src/errors.js";
import {
  findProgram,
  readIfThere,
  searchPath,
  unlessFailed,
} from "../../../../../../src/sandbox/network/egress/trust.js";
import { failure } from "../../../played-sandbox.js";
import { type ImageEntry, playedImage } from "./played-image.js";

const EACCES = 13;

describe("a file of an image", () => {
  it("is read with its bytes, and is none where it cannot be read", async () => {
    const bytes = Buffer.from([0, 255, 10]);
    const { image, context } = await playedImage({ "/a/file": bytes, "/a/link": { link: "file" } });
    const read = async (path: string) => await readIfThere(context, path, { maxBytes: 3 });
    expect(await read("/a/file")).toEqual(bytes);
    expect(await read("/a/link")).toEqual(bytes);
    expect(await read("/a/none")).toBeNull();
    expect(await read("/a")).toBeNull();
    image.fails = () => EACCES;
    expect(await read("/a/file")).toBeNull();
  });

  it("is none where it is larger than wanted, by a byte", async () => {
    const { context } = await playedImage({ "/file": "12345" });
    expect(await readIfThere(context, "/file", { maxBytes: 5 })).toEqual(Buffer.from("12345"));
    expect(await readIfThere(context, "/file", { maxBytes: 4 })).toBeNull();
  });

  it("is an error where the sandbox has ended: nothing further can be looked for in it", async () => {
    const { link, context } = await playedImage();
    const gone = new BrigError("over", { code: "sandbox.gone", reason: "closed" });
    link.end(gone);
    expect(await failure(readIfThere(context, "/file", { maxBytes: 4 }))).toMatchObject({
      code: "sandbox.gone",
    });
  });
});

describe("what fails", () => {
  it("is null only where the failure is one of brig's that the sandbox survives", async () => {
    const brigs = new BrigError("no", { code: "file.failed" });
    expect(await unlessFailed(Promise.reject(brigs))).toBeNull();
    expect(await unlessFailed(Promise.resolve(1))).toBe(1);
    const gone = new BrigError("no", { code: "sandbox.gone", reason: "killed" });
    expect(await failure(unlessFailed(Promise.reject(gone)))).toBe(gone);
    const other = new TypeError("a fault of brig");
    expect(await failure(unlessFailed(Promise.reject(other)))).toBe(other);
  });
});

describe("a program of an image", () => {
  const find = async (entries: Record<string, ImageEntry>, directories: readonly string[]) => {
    const { image, context } = await playedImage(entries);
    return {
      found: await findProgram(context, "tool", directories),
      asked: image.requests.map(({ at }) => at),
    };
  };

  it("is the first file of its name in the order of the directories", async () => {
    const entries = { "/two/tool": "x", "/three/tool": "x" };
    expect((await find(entries, ["/one", "/two", "/three"])).found).toBe("/two/tool");
    expect((await find(entries, ["/three", "/two"])).found).toBe("/three/tool");
    expect((await find(entries, ["/one"])).found).toBeNull();
    expect((await find(entries, [])).found).toBeNull();
  });

  it("is found by a link to it, and has the link's path", async () => {
    const entries = { "/bin/tool": { link: "/opt/real" }, "/opt/real": "x" };
    expect((await find(entries, ["/bin"])).found).toBe("/bin/tool");
  });

  it("is neither a directory of its name, nor a link to nothing or in a circle", async () => {
    const entries = {
      "/one/tool/file": "x",
      "/two/tool": { link: "none" },
      "/three/tool": { link: "tool" },
      "/four/tool": "x",
    };
    expect((await find(entries, ["/one", "/two", "/three", "/four"])).found).toBe("/four/tool");
  });

  it("is looked for in 32 directories and no more, whatever the image names", async () => {
    const directories = Array.from({ length: 40 }, (_, index) => `/d${index}`);
    const { asked } = await find({}, directories);
    expect(asked.toSorted()).toEqual(
      directories
        .slice(0, 32)
        .map((directory) => `${directory}/tool`)
        .toSorted(),
    );
    expect((await find({ "/d31/tool": "x" }, directories)).found).toBe("/d31/tool");
    expect((await find({ "/d32/tool": "x" }, directories)).found).toBeNull();
  });
});

describe("a search path", () => {
  it.each([
    ["/usr/bin:/bin", ["/usr/bin", "/bin"]],
    ["relative:/bin:.:~/bin", ["/bin"]],
    ["::/bin:", ["/bin"]],
    ["", []],
  ])("of %j has the absolute directories", (PATH, directories) => {
    expect(searchPath({ PATH })).toEqual(directories);
  });

  it("that an image does not have is empty", () => {
    expect(searchPath({ OTHER: "/bin" })).toEqual([]);
  });
});
