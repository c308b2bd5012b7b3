import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBrigError } from "../../../../src/errors.js";
import { parseCauses } from "../../../../src/sandbox/process/exit-record.js";

interface CauseFields {
  kind: number;
  flags?: number;
  limit?: number;
  share?: number;
  path?: string;
}

function record({ kind, flags = 0, limit = 0, share = 0, path = "" }: CauseFields): Buffer {
  const head = Buffer.alloc(14);
  head.writeUInt8(kind, 0);
  head.writeUInt8(flags, 1);
  head.writeUInt16LE(Buffer.byteLength(path), 2);
  head.writeBigUInt64LE(BigInt(limit), 4);
  head.writeUInt16LE(share, 12);
  return Buffer.concat([head, Buffer.from(path)]);
}

describe("the causes in an EXIT", () => {
  it.for<[CauseFields, object]>([
    [
      { kind: 1, limit: 5 },
      { kind: "memory-limit", limitBytes: 5 },
    ],
    [
      { kind: 1, limit: 2 ** 63 },
      { kind: "memory-limit", limitBytes: null },
    ],
    [{ kind: 1, flags: 1 }, { kind: "machine-memory" }],
    [
      { kind: 2, limit: 64 },
      { kind: "process-limit", limit: 64 },
    ],
    [
      { kind: 2, flags: 1, limit: 64 },
      { kind: "process-limit", limit: null },
    ],
    [
      { kind: 3, limit: 7, path: "/tmp" },
      { kind: "full-directory", path: "/tmp", lacks: "bytes", limit: 7, wasFull: false },
    ],
    [
      { kind: 4, flags: 6, limit: 7, path: "/ä b" },
      { kind: "disk-full", path: "/ä b", lacks: "files", limit: 7, wasFull: true },
    ],
    [
      { kind: 5, limit: 1500, share: 250 },
      { kind: "cpu-limit", cpus: 1.5, share: 0.25 },
    ],
    [
      { kind: 5, share: 65_535 },
      { kind: "cpu-limit", cpus: null, share: 1 },
    ],
  ])("%j is read", ([fields, expected]) => {
    const other = { kind: 2, limit: 1 };
    expect(parseCauses(Buffer.concat([record(fields), record(other)]))).toEqual([
      expected,
      { kind: "process-limit", limit: 1 },
    ]);
  });

  it("no bytes do anything but give causes or end the session", () => {
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc
        .record({ kind: fc.nat(6), share: fc.nat(65_535), flags: fc.nat(255), path: fc.string() })
        .map(record),
    );
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 3 }), (parts) => {
        try {
          parseCauses(Buffer.concat(parts));
        } catch (error) {
          expect(isBrigError(error, "protocol.invalid")).toBe(true);
        }
      }),
    );
  });
});
