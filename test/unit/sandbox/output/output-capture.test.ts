import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  countLines,
  OutputCapture,
  renderOutput,
  total,
} from "../../../../src/sandbox/output/captured-output.js";

function capture(bytes: Uint8Array, cuts: number[], limitBytes: number) {
  const output = new OutputCapture(limitBytes);
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  edges.slice(1).forEach((edge, index) => {
    output.push(bytes.subarray(edges[index], edge));
  });
  return output;
}

describe("OutputCapture", () => {
  it("keeps everything up to its limit, however it is cut into chunks", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.array(fc.nat()), (text, cuts) => {
        const bytes = Buffer.from(text);
        expect(renderOutput(capture(bytes, cuts, Math.max(1, bytes.length)).take())).toBe(text);
      }),
    );
  });

  it("counts bytes, characters and lines of the whole output exactly, dropped ones too", () => {
    const text = fc.string({ unit: "binary", maxLength: 300 });
    fc.assert(
      fc.property(text, fc.array(fc.nat()), fc.integer({ min: 1, max: 64 }), (whole, cuts, limit) => {
        const output = capture(Buffer.from(whole), cuts, limit).take();
        expect(total(output, "bytes")).toBe(Buffer.byteLength(whole));
        expect(total(output, "chars")).toBe([...whole].length);
        const lines = whole.split("\n");
        expect(countLines(output)).toBe(lines.at(-1) === "" ? lines.length - 1 : lines.length);
      }),
    );
  });

  it("keeps head and tail as whole characters around what it dropped", () => {
    const text = fc.string({ unit: "grapheme", minLength: 80, maxLength: 300 });
    fc.assert(
      fc.property(text, fc.array(fc.nat()), fc.integer({ min: 8, max: 64 }), (whole, cuts, limit) => {
        const { pieces } = capture(Buffer.from(whole), cuts, limit).take();
        const [head, gap, tail] = pieces;
        expect(pieces).toHaveLength(3);
        expect(whole.startsWith(String(head))).toBe(true);
        expect(typeof gap).toBe("object");
        expect(whole.endsWith(String(tail))).toBe(true);
        expect(Buffer.byteLength(String(head)) + 4).toBeGreaterThan(Math.floor(limit / 2));
        expect(Buffer.byteLength(String(tail)) + 4).toBeGreaterThan(limit - Math.floor(limit / 2));
      }),
    );
  });

  it("says how many bytes are missing", () => {
    const output = capture(Buffer.from("0123456789"), [], 4).take();
    expect(renderOutput(output)).toBe("01\n... 6 bytes omitted ...\n89");
  });

  it("replaces bytes that are not UTF-8", () => {
    expect(renderOutput(capture(Buffer.from([0x61, 0xff, 0x62]), [1, 2], 100).take())).toBe("a\ufffdb");
  });

  it("gives output once and starts anew", () => {
    const output = capture(Buffer.from("0123456789"), [], 4);
    output.take();
    output.push(Buffer.from("ab"));
    expect(renderOutput(output.take())).toBe("ab");
    expect(renderOutput(output.take())).toBe("");
  });

  it("holds no more than its limit of a flood", () => {
    const output = new OutputCapture(1000);
    const chunk = Buffer.alloc(65_536, "x");
    for (let round = 0; round < 100; round++) output.push(chunk);
    const taken = output.take();
    expect(total(taken, "bytes")).toBe(6_553_600);
    expect(renderOutput(taken).length).toBeLessThan(1050);
  });
});
