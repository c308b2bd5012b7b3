import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChangeParser, isPathBelow, type TreeChange } from "../../../../src/sandbox/tree/tree-changes.js";
import { changeRecord } from "../../../support/change-records.js";

const added = changeRecord({
  change: 1,
  path: "a/new",
  now: { type: 1, mode: 0o644, size: 5n, allocated: 4n, ino: 7n, links: 2 },
});
const modified = changeRecord({ change: 2, path: "b", now: { type: 3, target: "to" }, before: { type: 2 } });
const deleted = changeRecord({ change: 3, path: "c", before: { type: 2 } });

function parse(bytes: Buffer): TreeChange[] {
  const parser = new ChangeParser();
  const changes = parser.push(bytes);
  parser.end();
  return changes;
}

describe("the records of a scan", () => {
  it("say what is at a path now, and what was there", () => {
    const [one, two, three] = parse(Buffer.concat([added, modified, deleted]));
    expect(one).toMatchObject({
      change: "added",
      path: Buffer.from("a/new"),
      now: {
        type: "file",
        mode: 0o644,
        sizeBytes: 5,
        allocatedBytes: 4,
        ino: 7n,
        links: 2,
        linkTarget: null,
      },
      before: null,
    });
    expect(two).toMatchObject({
      change: "modified",
      now: { type: "symlink", linkTarget: Buffer.from("to") },
      before: { type: "directory" },
    });
    expect(three).toMatchObject({ change: "deleted", now: null });
  });

  it("may be cut anywhere", () => {
    const all = Buffer.concat([added, modified, deleted]);
    const whole = parse(all);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 100 })), (sizes) => {
        const parser = new ChangeParser();
        const changes: TreeChange[] = [];
        let at = 0;
        for (const size of [...sizes, all.length]) {
          changes.push(...parser.push(all.subarray(at, at + size)));
          at = Math.min(at + size, all.length);
        }
        parser.end();
        expect(changes).toEqual(whole);
      }),
    );
  });

  it.for<[string, Parameters<typeof changeRecord>[0]]>([
    ["an unknown change", { change: 9, path: "a", now: { type: 1 } }],
    ["an unknown type", { change: 1, path: "a", now: { type: 8 } }],
    ["an absolute path", { change: 1, path: "/a", now: { type: 1 } }],
    ["a path that leads out", { change: 1, path: "a/../../b", now: { type: 1 } }],
    ["an empty path", { change: 1, path: "", now: { type: 1 } }],
    ["a path with a NUL", { change: 1, path: "a\0b", now: { type: 1 } }],
    ["a path that ends in a slash", { change: 1, path: "a/", now: { type: 1 } }],
    ["a path longer than the kernel's", { change: 1, path: `${"a/".repeat(2048)}a`, now: { type: 1 } }],
    ["a link target of a file", { change: 1, path: "a", now: { type: 1, target: "x" } }],
    ["a link target with a NUL", { change: 1, path: "a", now: { type: 3, target: "x\0" } }],
    ["a link target that is too long", { change: 1, path: "a", now: { type: 3, target: "x".repeat(4097) } }],
    ["an addition to what was there", { change: 1, path: "a", now: { type: 1 }, before: { type: 1 } }],
    ["a deletion of what is there", { change: 3, path: "a", now: { type: 1 }, before: { type: 1 } }],
    ["a modification of nothing", { change: 2, path: "a", now: { type: 1 } }],
    ["a mode that is none", { change: 1, path: "a", now: { type: 1, mode: 0o10000 } }],
    ["a size beyond all disks", { change: 1, path: "a", now: { type: 1, size: 1n << 60n } }],
    [
      "the size of what is not there",
      { change: 3, path: "a", now: { type: 0, size: 1n }, before: { type: 1 } },
    ],
    [
      "the mode of what is not there",
      { change: 1, path: "a", now: { type: 1 }, before: { type: 0, mode: 1 } },
    ],
    ["a count that was not asked for", { change: 3, path: "a", before: { type: 2 }, below: 1n }],
    ["a reserved byte", { change: 1, path: "a", now: { type: 1 }, reserved: 1 }],
  ])("are refused with %s", ([, record]) => {
    expect(() => parse(changeRecord(record))).toThrow(expect.objectContaining({ code: "protocol.invalid" }));
  });

  it("are refused out of order, twice, or cut off at the end", () => {
    const broken = expect.objectContaining({ code: "protocol.invalid" });
    expect(() => parse(Buffer.concat([modified, added]))).toThrow(broken);
    expect(() => parse(Buffer.concat([added, added]))).toThrow(broken);
    expect(() => parse(added.subarray(0, -1))).toThrow(broken);
    expect(() => parse(added.subarray(0, 20))).toThrow(broken);
  });

  it("never do anything but parse or be refused, whatever they hold", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), fc.nat(119), (noise, at) => {
        const record = Buffer.concat([added, Buffer.from(noise)]);
        record.writeUInt8(noise[0] ?? 0, at);
        try {
          for (const { path } of parse(record)) expect(isPathBelow(path)).toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ code: "protocol.invalid" });
        }
      }),
    );
  });
});
