import { describe, expect, it } from "vitest";
import { COMMIT_RECORD_BYTES } from "../../../../src/sandbox/channel/protocol.js";
import { encodeRecord, sortRecords, type TreeRecord } from "../../../../src/sandbox/tree/tree-commit.js";

const remove = (path: string | Uint8Array): TreeRecord => ({ action: "remove", path, expects: "any" });
const encoded = (record: TreeRecord) => encodeRecord({ ...record, path: Buffer.from(record.path) });

describe("the records of a commit", () => {
  it("are put into the order of the bytes of their paths", () => {
    const paths = ["b", "a/c", "a-b", "a", Buffer.from("\xff", "latin1"), "é"];
    const sorted = sortRecords(paths.map(remove)).map(({ path }) => path.toString("latin1"));
    expect(sorted).toEqual(["a", "a-b", "a/c", "b", "\xc3\xa9", "\xff"]);
  });

  it.for(["", "/a", "a/", "a//b", ".", "a/..", "../a", "a/./b", "a\0b", "n".repeat(256), "a/".repeat(2048)])(
    "are refused with the path %j",
    (path) => {
      expect(() => sortRecords([remove(path)])).toThrow(expect.objectContaining({ code: "file.failed" }));
    },
  );

  it("are refused when a path is there twice", () => {
    expect(() => sortRecords([remove("a"), remove(Buffer.from("a"))])).toThrow("twice");
  });

  it.for(["", "a\0b", "x".repeat(4096)])("are refused with the link target %#", (target) => {
    const link: TreeRecord = {
      action: "symlink",
      path: "l",
      linkTarget: Buffer.from(target),
      expects: "any",
    };
    expect(() => encoded(link)).toThrow(expect.objectContaining({ code: "file.failed" }));
  });

  it("say what to write, for whom, and what is expected there", () => {
    const record = encoded({
      action: "put",
      path: "dir/file",
      content: 7,
      mode: 0o640,
      owner: { uid: 1000, gid: 100 },
      modifiedNs: -5n,
      expects: { type: "file", ino: 9n, sizeBytes: 11, modifiedNs: 13n, changedNs: 15n },
    });
    expect([...record.subarray(0, 4)]).toEqual([1, 2, 1, 0]);
    expect([4, 8, 12, 16, 20, 24, 28].map((at) => record.readUInt32LE(at))).toEqual([
      7, 0o640, 1000, 100, 8, 0, 0,
    ]);
    expect([32, 40, 48, 56, 64].map((at) => record.readBigInt64LE(at))).toEqual([-5n, 9n, 11n, 13n, 15n]);
    expect(record.toString("utf8", COMMIT_RECORD_BYTES)).toBe("dir/file");
  });

  it("leave owner and time alone unless they are given", () => {
    const record = encoded({
      action: "symlink",
      path: "l",
      linkTarget: Buffer.from("to"),
      expects: "absent",
    });
    expect([...record.subarray(0, 4)]).toEqual([3, 1, 0, 0]);
    expect([record.readUInt32LE(12), record.readUInt32LE(16)]).toEqual([0xffff_ffff, 0xffff_ffff]);
    expect(record.readBigInt64LE(32)).toBe(-(1n << 63n));
    expect(record.toString("utf8", COMMIT_RECORD_BYTES)).toBe("lto");
  });
});
