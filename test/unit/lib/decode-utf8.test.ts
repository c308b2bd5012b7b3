import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeUtf8 } from "../../../src/lib/utf8.js";

describe("decodeUtf8", () => {
  it.each([
    [[0xff], "invalid utf-8 sequence of 1 bytes from index 0"],
    [[0x61, 0xc3], "incomplete utf-8 byte sequence from index 1"],
    [[0x61, 0xe2, 0x82], "incomplete utf-8 byte sequence from index 1"],
    [[0x61, 0xe2, 0x82, 0x41], "invalid utf-8 sequence of 2 bytes from index 1"],
    [[0xf0, 0x9f, 0x98, 0x41], "invalid utf-8 sequence of 3 bytes from index 0"],
    [[0xed, 0xa0, 0x80], "invalid utf-8 sequence of 1 bytes from index 0"],
    [[0xc0, 0x80], "invalid utf-8 sequence of 1 bytes from index 0"],
    [[0xf4, 0x90, 0x80, 0x80], "invalid utf-8 sequence of 1 bytes from index 0"],
    [[0xf5, 0x80], "invalid utf-8 sequence of 1 bytes from index 0"],
    [[0xc3, 0xa9, 0x80], "invalid utf-8 sequence of 1 bytes from index 2"],
  ])("says where %j stops being text", (bytes, reason) => {
    expect(decodeUtf8(Uint8Array.from(bytes))).toEqual({ kind: "invalid", reason });
  });

  it("keeps a byte order mark", () => {
    expect(decodeUtf8(Buffer.from("\ufeffa"))).toEqual({ kind: "text", text: "\ufeffa" });
  });

  it("gives text that encodes to the same bytes, or the reason why there is none", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
        const decoded = decodeUtf8(bytes);
        if (decoded.kind === "text") expect(Buffer.from(decoded.text)).toEqual(Buffer.from(bytes));
        else expect(decoded.reason).toMatch(/^(?:incomplete|invalid) utf-8 .* from index \d+$/);
      }),
      { numRuns: 500 },
    );
  });
});
