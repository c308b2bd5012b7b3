import { describe, expect, it } from "vitest";
import { parseGitIndex } from "../../../../src/sandbox/git/git-index.js";
import {
  EXTENDED,
  entry,
  extension,
  GITLINK,
  index,
  LONG_NAME,
  SHA1,
  SHA256,
  shortened,
} from "./index-bytes.js";

const submodule = (name: string | Buffer) => ({ name, mode: GITLINK });
const nothing = { gitlinks: [], heads: [], sharedIndex: null, isSparse: false };

describe("an index", () => {
  it("without entries lists nothing", () => {
    expect(parseGitIndex(index(), SHA1)).toEqual(nothing);
    expect(parseGitIndex(index({ hashBytes: SHA256 }), SHA256)).toEqual(nothing);
  });

  it.each([2, 3, 4])("is one in version %i", (version) => {
    expect(parseGitIndex(index({ version }), SHA1)).toEqual(nothing);
  });

  it.each([0, 1, 5, 0xffffffff])("is none in version %i", (version) => {
    expect(parseGitIndex(index({ version }), SHA1)).toBeNull();
  });

  it.each([
    ["empty", Buffer.alloc(0)],
    ["cut off in its head", index().subarray(0, 11)],
    ["a byte too short for its head and its hash", index().subarray(0, -1)],
    ["of another kind", Buffer.from(index().toString("latin1").replace("DIRC", "DIRD"), "latin1")],
    ["in lower case", Buffer.from(index().toString("latin1").replace("DIRC", "dirc"), "latin1")],
    ["with fewer entries than it says", index({ count: 1 })],
    ["with the most entries that it can say", index({ count: 0xffffffff, entries: [entry({ name: "a" })] })],
  ])("is none that is %s", (_, bytes) => {
    expect(parseGitIndex(bytes, SHA1)).toBeNull();
  });

  it("lists submodules by their mode alone, in the order of the index", () => {
    const names = ["a", "b/c", "d".repeat(7), "e".repeat(8), "f".repeat(9)];
    const modes = [0o120000, 0o040000, 0o100755, 0o060000, 0].map((mode) => ({ name: "other", mode }));
    const entries = [...modes, ...names.map(submodule), { name: "g", mode: GITLINK | 0o777 }].map((one) =>
      entry(one),
    );
    expect(parseGitIndex(index({ entries }), SHA1)).toEqual({ ...nothing, gitlinks: [...names, "g"] });
  });

  it("lists files named HEAD in a directory, and nothing that is only like them", () => {
    const heads = ["a/HEAD", "a/b/HEAD", "HEAD/HEAD"];
    const others = [
      "HEAD",
      "/HEAD",
      "a/head",
      "aHEAD",
      "a/HEADS",
      "a/HEA",
      "a/XEAD",
      "a/HEAX",
      "a-HEAD",
      "D",
    ];
    const entries = [...others, ...heads].map((name) => entry({ name }));
    expect(parseGitIndex(index({ entries }), SHA1)).toEqual({ ...nothing, heads });
    const link = parseGitIndex(index({ entries: [entry(submodule("x/HEAD"))] }), SHA1);
    expect(link).toEqual({ ...nothing, gitlinks: ["x/HEAD"] });
  });

  it("gives names byte for byte, whatever is in them", () => {
    const bytes = Buffer.from([0xff, 0x0a, 0x1b, 0x2f, 0xe9]);
    const { gitlinks } = parseGitIndex(index({ entries: [entry(submodule(bytes))] }), SHA1) ?? nothing;
    expect(gitlinks).toEqual([bytes.toString("latin1")]);
  });

  it("has hashes of 32 bytes in a repository of SHA-256", () => {
    const entries = [entry(submodule("one"), SHA256), entry(submodule("two"), SHA256)];
    const bytes = index({ entries, hashBytes: SHA256 });
    expect(parseGitIndex(bytes, SHA256)?.gitlinks).toEqual(["one", "two"]);
    expect(parseGitIndex(bytes, SHA1)?.gitlinks).not.toEqual(["one", "two"]);
  });

  it("has two bytes more in an extended entry of version 3, and not in one of version 2", () => {
    const given = { ...submodule("extended"), flags: EXTENDED };
    const entries = [entry(given), entry(submodule("next"))];
    expect(parseGitIndex(index({ version: 3, entries }), SHA1)?.gitlinks).toEqual(["extended", "next"]);
    const [name] = parseGitIndex(index({ version: 2, entries: [entry(given)] }), SHA1)?.gitlinks ?? [];
    expect(name).toBe(" \0extend");
    const plain = entry({ ...submodule("plain"), flags: 0x8000 | 0x3000 });
    expect(parseGitIndex(index({ version: 3, entries: [plain] }), SHA1)?.gitlinks).toEqual(["plain"]);
  });

  it.each([LONG_NAME - 1, LONG_NAME, LONG_NAME + 1, 70_000])(
    "has a name of %i bytes, whose length an entry may be too short to say",
    (length) => {
      const names = ["x".repeat(length), "next"];
      const entries = names.map((name) => entry(submodule(name)));
      expect(parseGitIndex(index({ entries }), SHA1)?.gitlinks).toEqual(names);
    },
  );

  it("is none with a long name that does not end", () => {
    const long = entry(submodule("x".repeat(LONG_NAME))).subarray(0, -8);
    expect(parseGitIndex(index({ entries: [long] }), SHA1)).toBeNull();
    // It does end, but only in the hash that the index ends with.
    const bytes = index({ entries: [long] });
    bytes.fill(0, bytes.length - SHA1);
    expect(parseGitIndex(bytes, SHA1)).toBeNull();
  });

  it("is none with a name that reaches into its last hash", () => {
    const whole = entry(submodule("a-name"));
    const cutAt = (length: number) => index({ entries: [whole.subarray(0, length)] });
    const nameEnd = 40 + SHA1 + 2 + "a-name".length;
    expect(parseGitIndex(cutAt(nameEnd), SHA1)).toBeNull();
    expect(parseGitIndex(cutAt(nameEnd + 1), SHA1)?.gitlinks).toEqual(["a-name"]);
  });

  it("is none with an entry that is cut off before its flags", () => {
    const bytes = entry(submodule(""));
    const cutAt = (length: number) => index({ entries: [bytes.subarray(0, length)] });
    expect(parseGitIndex(cutAt(40 + SHA1), SHA1)).toBeNull();
    expect(parseGitIndex(cutAt(40 + SHA1 + 1), SHA1)).toBeNull();
    expect(parseGitIndex(cutAt(40 + SHA1 + 3), SHA1)?.gitlinks).toEqual([""]);
  });

  it("may have the same name more than once, as during a merge", () => {
    const entries = [entry(submodule("same")), entry(submodule("same"))];
    expect(parseGitIndex(index({ entries }), SHA1)?.gitlinks).toEqual(["same", "same"]);
  });
});

describe("an index of version 4", () => {
  const parsed = (...entries: Buffer[]) => parseGitIndex(index({ version: 4, entries }), SHA1);

  it("has names that go on from where the one before is cut", () => {
    const found = parsed(
      shortened([0], submodule("dir/one")),
      shortened([3], submodule("two")),
      shortened([7], submodule("HEAD")),
      shortened([0], { name: "/HEAD" }),
      shortened([9], submodule("last")),
    );
    expect(found).toEqual({
      ...nothing,
      gitlinks: ["dir/one", "dir/two", "HEAD", "last"],
      heads: ["HEAD/HEAD"],
    });
  });

  it("goes on after names of files, which are not kept", () => {
    expect(parsed(shortened([0], { name: "a/b" }), shortened([1], submodule("c")))?.gitlinks).toEqual([
      "a/c",
    ]);
  });

  it.each([
    [[0x7f], 127],
    [[0x80, 0x00], 128],
    [[0x80, 0x01], 129],
    [[0x80, 0x7f], 255],
    [[0x81, 0x00], 256],
    [[0xff, 0x00], 16_384],
    [[0x80, 0x80, 0x00], 16_512],
  ])("cuts with %j as many as %i bytes", (strip, count) => {
    const long = shortened([0], submodule("x".repeat(count)));
    expect(parsed(long, shortened(strip, submodule("y")))?.gitlinks[1]).toBe("y");
    const longer = shortened([0], submodule("x".repeat(count + 1)));
    expect(parsed(longer, shortened(strip, submodule("y")))?.gitlinks[1]).toBe("xy");
    const shorter = shortened([0], submodule("x".repeat(count - 1)));
    expect(parsed(shorter, shortened(strip, submodule("y")))).toBeNull();
  });

  it.each([
    ["that has no end", [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]],
    ["that is larger than any name", [0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
  ])("is none with a number %s", (_, strip) => {
    expect(parsed(shortened([0], submodule("x")), shortened(strip, submodule("y")))).toBeNull();
  });

  it("is none where its last hash would have to be read for a number or a name", () => {
    const cut = (length: number) => parsed(shortened([0], submodule("name")).subarray(0, length));
    const flagsEnd = 40 + SHA1 + 2;
    expect(cut(flagsEnd)).toBeNull();
    expect(cut(flagsEnd + 1)).toBeNull();
    expect(cut(flagsEnd + 1 + "name".length)).toBeNull();
    expect(cut(flagsEnd + 2 + "name".length)?.gitlinks).toEqual(["name"]);
    const unended = shortened([0x80], submodule("")).subarray(0, -1);
    expect(parsed(unended)).toBeNull();
    // A hash of zeros is one as well: git may leave it out.
    const withoutEnd = index({ version: 4, entries: [shortened([0], submodule("name")).subarray(0, -1)] });
    withoutEnd.fill(0, withoutEnd.length - SHA1);
    expect(parseGitIndex(withoutEnd, SHA1)).toBeNull();
  });

  it("has two bytes more in an extended entry", () => {
    const flags = Buffer.from([0x20, 0x00]);
    const bytes = shortened([0], { ...submodule("name"), flags: EXTENDED });
    const flagsEnd = 40 + SHA1 + 2;
    const extended = Buffer.concat([bytes.subarray(0, flagsEnd), flags, bytes.subarray(flagsEnd)]);
    expect(parsed(extended, shortened([4], submodule("next")))?.gitlinks).toEqual(["name", "next"]);
  });
});

describe("what follows the entries of an index", () => {
  const hash = Buffer.from("0123456789abcdef0123456789abcdef01234567", "hex");
  const parsed = (...extensions: Buffer[]) =>
    parseGitIndex(index({ entries: [entry({ name: "file" })], extensions }), SHA1);

  it("says that it is sparse", () => {
    expect(parsed(extension("sdir", Buffer.alloc(0)))).toEqual({ ...nothing, isSparse: true });
    expect(parsed(extension("TREE", Buffer.from("sdir")))).toEqual(nothing);
    expect(parsed(extension("SDIR", Buffer.alloc(0)))).toEqual(nothing);
  });

  it("names the index with the other entries, unless it is split no more", () => {
    const shared = { ...nothing, sharedIndex: `sharedindex.${hash.toString("hex")}` };
    expect(parsed(extension("link", hash))).toEqual(shared);
    expect(parsed(extension("link", Buffer.concat([hash, Buffer.alloc(50, 1)])))).toEqual(shared);
    expect(parsed(extension("link", Buffer.alloc(SHA1)))).toEqual(nothing);
    const last = Buffer.from([...Buffer.alloc(SHA1 - 1), 1]);
    expect(parsed(extension("link", last))?.sharedIndex).toMatch(/^sharedindex\.0{39}1$/);
    expect(parsed(extension("link", hash.subarray(1)))).toEqual(nothing);
    expect(parsed(extension("LINK", hash))).toEqual(nothing);
  });

  it("is found behind others, of any length", () => {
    const found = parsed(
      extension("TREE", Buffer.alloc(5, 0x41)),
      extension("REUC", Buffer.alloc(0)),
      extension("link", hash),
      extension("sdir", Buffer.alloc(3)),
    );
    expect(found).toMatchObject({ isSparse: true, sharedIndex: `sharedindex.${hash.toString("hex")}` });
  });

  it("is not looked for beyond an extension that is longer than the index", () => {
    expect(
      parsed(extension("TREE", Buffer.alloc(0), 0xffffffff), extension("sdir", Buffer.alloc(0))),
    ).toEqual(nothing);
    expect(parsed(extension("TREE", Buffer.alloc(0), 1), extension("sdir", Buffer.alloc(1)))).toEqual(
      nothing,
    );
  });

  it("is not read from the hash at the end", () => {
    const bytes = index({ extensions: [Buffer.from("sdi")] });
    bytes.write("r", bytes.length - SHA1);
    expect(parseGitIndex(bytes, SHA1)).toEqual(nothing);
    const cut = index({ extensions: [Buffer.from("sdir\0\0\0")] });
    cut.fill(0, cut.length - SHA1);
    expect(parseGitIndex(cut, SHA1)).toEqual(nothing);
  });
});
