import { describe, expect, it } from "vitest";
import type { TreeRecord } from "../../../../src/sandbox/tree/tree-commit.js";
import { type CopyRecord, type CopyRequest, copyTree } from "../../../../src/sandbox/tree/tree-copy.js";
import { type OverlayTree, openOverlayTree } from "../../../support/overlay-tree.js";

const places = [
  { place: "the same file system", onOtherDevice: false },
  { place: "another file system", onOtherDevice: true },
];
const large = 1024 ** 3;
const modifiedNs = 1_500_000_000_123_456_789n;
const owner = { uid: 1234, gid: 2345 };

/** A file, unless it says something else. */
function record(path: string | Buffer, more: Partial<CopyRecord> = {}): CopyRecord {
  const file = { action: "put", content: 0, mode: 0o644, owner, modifiedNs, maxBytes: large } as const;
  return { ...(more.action === undefined ? file : {}), path, expects: "any", ...more } as CopyRecord;
}

const directory = (path: string, mode = 0o755) => record(path, { action: "mkdir", mode, owner, modifiedNs });

async function copy(tree: OverlayTree, records: CopyRecord[], more: Partial<CopyRequest> = {}) {
  const request = { target: "/merged/to", from: "/base/from", records, maxBytes: large, ...more };
  const copied = await copyTree(tree.keeper.context, request);
  return copied.filter(({ isLeftOut }) => isLeftOut).map(({ path }) => path.toString("latin1"));
}

const describeAll = `cd /merged/to; find . -mindepth 1 -printf '%P %y %m %U %l\\n' | LC_ALL=C sort`;

describe.for(places)("a copy of paths of a tree on $place", ({ onOtherDevice }) => {
  it("replaces whatever is there, and leaves all the rest", async () => {
    await using tree = await openOverlayTree({
      base: `mkdir -p from/new from/was-file to/dir/deep to/was-dir/deep to/kept to/gone/deep
        echo new > from/file; echo x > from/new/x; echo y > from/was-dir; echo z > from/was-link; echo in > from/was-file/in
        echo old > to/file; echo old > to/was-file; ln -s kept to/was-link; echo 1 > to/was-dir/deep/1; echo 1 > to/gone/deep/1
        echo kept > to/kept/file; echo 1 > to/dir/deep/1; echo 1 > to/removed`,
      onOtherDevice,
    });
    const records = [
      record("file", { mode: 0o750 } as Partial<CopyRecord>),
      directory("new", 0o555),
      record("new/x"),
      record("was-dir"),
      record("was-link"),
      directory("was-file"),
      record("was-file/in"),
      record("dir", { action: "symlink", linkTarget: Buffer.from("../\xff", "latin1"), owner, modifiedNs }),
      record("gone", { action: "remove" }),
      record("removed", { action: "remove" }),
      record("never/was", { action: "remove" }),
      directory("kept", 0o700),
    ];
    expect(await copy(tree, records)).toEqual([]);
    expect((await tree.keeper.shell(describeAll)).split("\n")).toEqual([
      "dir l 777 1234 ../\xff",
      "file f 750 1234 ",
      "kept d 700 1000 ",
      "kept/file f 644 1000 ",
      "new d 555 1234 ",
      "new/x f 644 1234 ",
      "was-dir f 644 1234 ",
      "was-file d 755 1234 ",
      "was-file/in f 644 1234 ",
      "was-link f 644 1234 ",
      "",
    ]);
    const contents =
      "cat file new/x was-dir was-link was-file/in; stat -c %Y file dir new was-file | sort -u";
    expect(await tree.keeper.shell(`cd /merged/to; ${contents}`)).toBe("new\nx\ny\nz\nin\n1500000000\n");
  });

  it("takes a file as it is now, but never more of it than was asked for, and no hole", async () => {
    await using tree = await openOverlayTree({
      base: `mkdir from to; head -c 100000 /dev/urandom > from/grown; echo short > from/shrunk; : > from/empty
        truncate -s 1T from/sparse; echo middle | dd of=from/sparse bs=1M seek=500000 conv=notrunc status=none`,
      onOtherDevice,
    });
    const records = [
      record("grown", { maxBytes: 70_000 } as Partial<CopyRecord>),
      record("shrunk", { maxBytes: 70_000 } as Partial<CopyRecord>),
      record("empty"),
      record("sparse", { maxBytes: 2 ** 40 } as Partial<CopyRecord>),
    ];
    await copy(tree, records, { maxBytes: 200_000 });
    const look = `cd /merged/to; stat -c '%n %s' *; cmp -n 70000 grown /base/from/grown; cat shrunk; [ $(stat -c %b sparse) -lt 100 ]`;
    expect(
      await tree.keeper.shell(`${look} && dd if=sparse bs=1M skip=500000 count=1 status=none | head -c 7`),
    ).toBe("empty 0\ngrown 70000\nshrunk 6\nsparse 1099511627776\nshort\nmiddle\n");
  });
});

describe("a copy of paths of a tree that others change", () => {
  it("leaves out what is no regular file any more, and opens and follows nothing else", async () => {
    await using tree = await openOverlayTree({
      base: `mkdir -p from/dir from/file to/host secret; echo secret > secret/key; echo host > to/host/key; echo host > to/link
        mkfifo from/fifo; ln -s ../../secret/key from/link; ln -s /etc/hostname from/absolute; ln -s ../secret from/host
        echo good > from/good; chmod 000 from/good; ln -s . from/dot`,
    });
    const names = ["absolute", "dir", "dot/good", "fifo", "gone", "gone/deep", "good/x", "host/key", "link"];
    const odd = Buffer.from("odd\xff", "latin1");
    await tree.agent.shell("true");
    const left = await copy(
      tree,
      [...[...names, "good"].map((name) => record(name)), record(odd)].filter(
        ({ path }) => !["gone/deep", "good/x", "dot/good"].includes(path.toString()),
      ),
    );
    expect(left).toEqual(["absolute", "dir", "fifo", "gone", "host/key", "link", "odd\xff"]);
    expect(await tree.keeper.shell("cd /merged/to; ls; cat good host/key link")).toBe(
      "good\nhost\nlink\ngood\nhost\nhost\n",
    );
    expect(await tree.keeper.shell("cd /merged/to; ls -A | grep brig || true")).toBe("");
  });

  it("fails where it would write through a link, and outside of the tree nothing is written", async () => {
    await using tree = await openOverlayTree({
      base: "mkdir -p from/link other; echo x > from/link/x; mkdir to; ln -s ../other to/link",
    });
    await expect(copy(tree, [record("link/x")])).rejects.toMatchObject({
      code: expect.stringMatching(/^file\./),
    });
    expect(await tree.keeper.shell("ls -A /merged/other /merged/to")).toBe(
      "/merged/other:\n\n/merged/to:\nlink\n",
    );
  });

  it("fails when it would copy more bytes than allowed, whether in one file or in many", async () => {
    await using tree = await openOverlayTree({
      base: "mkdir from to; for n in 1 2 3; do head -c 40000 /dev/zero > from/$n; done",
    });
    const records = ["1", "2", "3"].map((name) => record(name));
    const tooLarge = { code: "file.too-large", message: expect.stringContaining("/merged/to/3") };
    await expect(copy(tree, records, { maxBytes: 119_999 })).rejects.toMatchObject(tooLarge);
    expect(await copy(tree, records, { maxBytes: 120_000 })).toEqual([]);
  });

  it("is given up with its signal, and leaves no stage", async () => {
    await using tree = await openOverlayTree({
      base: "mkdir from to; truncate -s 1G from/zeros; echo x > from/x",
    });
    const stop = new AbortController();
    const copying = copy(tree, [record("zeros"), record("x")], { signal: stop.signal });
    stop.abort(new Error("given up"));
    await expect(copying).rejects.toThrow("given up");
  });

  it("takes no records that expect something, nor such that only check", async () => {
    await using tree = await openOverlayTree({ base: "mkdir from to; echo x > from/x" });
    const wrong: TreeRecord[] = [
      { ...record("x"), expects: "absent" } as TreeRecord,
      { action: "check", path: "x", expects: "any" },
      record(".brig-stage-1"),
    ];
    for (const one of wrong)
      await expect(copy(tree, [one as CopyRecord])).rejects.toMatchObject({ errno: "EINVAL" });
  });
});

it("a copy of many thousand paths gives every directory its time, and tells each file's state", async () => {
  const [count, long] = [2_500, "long-name-".repeat(20)];
  await using tree = await openOverlayTree({
    base: `mkdir -p from/d/a from/d/b to; cd from/d; for n in {10001..${10_000 + count}}; do echo $n > a/${long}$n; done; cp -r a/. b`,
  });
  const files = Array.from({ length: count }, (_, n) => `${long}${10_001 + n}`);
  const records = ["d", "d/a", "d/b"].map((name) => directory(name));
  for (const name of ["d/a", "d/b"]) records.push(...files.map((file) => record(`${name}/${file}`)));
  const request = { target: "/merged/to", from: "/base/from", records, maxBytes: large };
  const copied = await copyTree(tree.keeper.context, request);
  expect(await tree.keeper.shell("cd /merged/to; stat -c %Y d d/a d/b; diff -r d /base/from/d")).toBe(
    "1500000000\n1500000000\n1500000000\n",
  );
  const states = (await tree.scan()).changes.filter(({ now }) => now?.type === "file");
  expect(states).toHaveLength(2 * count);
  const byPath = new Map(copied.map(({ path, stamp }) => [`to/${path}`, stamp]));
  for (const { path, now } of states) {
    const { type, ino, sizeBytes, changedNs } = now ?? {};
    if (
      JSON.stringify(byPath.get(path.toString()), big) !==
      JSON.stringify({ type, ino, sizeBytes, changedNs }, big)
    )
      expect(byPath.get(path.toString())).toEqual({ type, ino, sizeBytes, changedNs });
  }
});

const big = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
