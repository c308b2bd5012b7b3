import { describe, expect, it } from "vitest";
import { hostDirectory, statIn } from "../../../../src/sandbox/points/wanted.js";
import { added, playedTree } from "../overlay/played-tree.js";

const bytes = (path: string) => Buffer.from(path, "latin1");

describe("everything that the host has in a directory", () => {
  it("is what a scan against an empty one reports, without what is mounted", async () => {
    const tree = await playedTree();
    tree.leftOut = ["d/m", "d/n/o", "dm", "other"];
    tree.scans = [{ records: [added("a", { size: 1n })] }];
    const now = { tree, state: new Map(), touched: new Map(), isFresh: false, signal: undefined };
    const found = await hostDirectory(bytes("d"), now);
    expect(found.map(({ path }) => path.toString())).toEqual(["d/a"]);
    expect(tree.done()).toEqual(["mkdir /merged/STAGE", "changes /base/d", "recover /merged"]);
    const stage = tree.files.requests[0]?.path.toString();
    expect(tree.files.requests[1]?.second.toString()).toBe(`${stage}\0/base/d\0m\0n/o\0`);
  });

  it("cannot be had if it cannot be scanned, and then leaves nothing", async () => {
    const tree = await playedTree();
    tree.scans = [];
    const now = { tree, state: new Map(), touched: new Map(), isFresh: false, signal: undefined };
    await expect(hostDirectory(bytes("d"), now)).rejects.toMatchObject({ code: "file.not-found" });
    expect(tree.done().at(-1)).toBe("recover /merged");
  });
});

describe("a look at a path", () => {
  it.each([
    [2, null],
    [20, null],
    [40, null],
  ])("with the errno %d finds nothing", async (errno) => {
    const tree = await playedTree();
    tree.answer = () => ({ errno });
    expect(await statIn("/base", bytes("a"), { tree, signal: undefined })).toBeNull();
  });

  it("that fails otherwise is an error, and follows no link", async () => {
    const tree = await playedTree();
    tree.answer = () => ({ errno: 13 });
    const looking = statIn("/base", bytes("\xff"), { tree, signal: undefined });
    await expect(looking).rejects.toMatchObject({ code: "file.not-permitted" });
    expect(tree.files.requests[0]).toMatchObject({ flags: 129, path: bytes("/base/\xff") });
  });
});
