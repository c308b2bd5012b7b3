import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HeadAndTail, type KeptBytes } from "../../../../src/sandbox/output/captured-output.js";
import { textOf } from "../../../../src/sandbox/process/run-to-end.js";

function collected(maxBytes: number, chunks: readonly Uint8Array[]): HeadAndTail {
  const collector = new HeadAndTail(maxBytes);
  for (const chunk of chunks) collector.push(chunk);
  return collector;
}

function joined({ head, tail }: KeptBytes): Buffer {
  return Buffer.concat([head, tail]);
}

const chunksOfBytes = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 12 });

/** A text cut into pieces anywhere, also within a character. */
const choppedText = fc
  .tuple(fc.string({ unit: "grapheme", maxLength: 60 }), fc.array(fc.nat(200), { maxLength: 8 }))
  .map(([text, cuts]) => {
    const bytes = Buffer.from(text);
    const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b);
    return { text, chunks: at.slice(1).map((end, index) => bytes.subarray(at[index], end)) };
  });

describe("what is kept of a stream", () => {
  it("is everything, in order, as long as it fits", () => {
    fc.assert(
      fc.property(choppedText, ({ text, chunks }) => {
        const bytes = Buffer.from(text);
        const collector = collected(bytes.length, chunks);
        expect(collector.totalBytes).toBe(bytes.length);
        const kept = collector.take();
        expect(textOf(kept)).toBe(text);
        expect(kept).toEqual({ head: bytes, omittedBytes: 0, tail: Buffer.alloc(0) });
      }),
    );
  });

  it("is the first and the last half of the budget, however the bytes arrive", () => {
    fc.assert(
      fc.property(chunksOfBytes, fc.nat(64), (chunks, maxBytes) => {
        const all = Buffer.concat(chunks);
        const [headBytes, tailBytes] =
          all.length <= maxBytes ? [all.length, 0] : [Math.ceil(maxBytes / 2), Math.floor(maxBytes / 2)];
        expect(collected(maxBytes, chunks).take()).toEqual({
          head: all.subarray(0, headBytes),
          omittedBytes: all.length - headBytes - tailBytes,
          tail: all.subarray(all.length - tailBytes),
        });
      }),
    );
  });

  it("is a copy: the bytes of a chunk may be overwritten once it was pushed", () => {
    const chunk = Buffer.from("abcd");
    const collector = new HeadAndTail(6);
    collector.push(chunk);
    collector.push(chunk);
    chunk.fill("x");
    expect(joined(collector.take()).toString()).toBe("abcbcd");
  });

  it("is given once: the next bytes are the first of a new stream", () => {
    fc.assert(
      fc.property(chunksOfBytes, chunksOfBytes, fc.nat(30), (first, second, maxBytes) => {
        const kept = collected(maxBytes, first);
        const taken = kept.take();
        for (const chunk of second) kept.push(chunk);
        expect(kept.take()).toEqual(collected(maxBytes, second).take());
        expect(taken).toEqual(collected(maxBytes, first).take());
      }),
    );
  });

  it("goes its own way in a clone", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.uint8Array({ maxLength: 40 }),
        fc.nat(30),
        (first, second, maxBytes) => {
          const original = collected(maxBytes, [first]);
          const clone = original.clone();
          clone.push(second);
          expect(original.take()).toEqual(collected(maxBytes, [first]).take());
          expect(clone.take()).toEqual(collected(maxBytes, [first, second]).take());
        },
      ),
    );
  });
});

describe("a text that was cut", () => {
  const gap = /\n\[… (\d+) bytes left out …\]\n/;

  it("says between head and tail how many bytes are missing, and splits no character", () => {
    fc.assert(
      fc.property(choppedText, fc.nat(40), ({ text, chunks }, maxBytes) => {
        fc.pre(Buffer.byteLength(text) > maxBytes && !gap.test(text));
        const shown = textOf(collected(maxBytes, chunks).take());
        const [head = "", omitted, tail = ""] = shown.split(gap);
        expect(text.startsWith(head)).toBe(true);
        expect(text.endsWith(tail)).toBe(true);
        expect(Buffer.byteLength(head) + Number(omitted) + Buffer.byteLength(tail)).toBe(
          Buffer.byteLength(text),
        );
      }),
      { numRuns: 500 },
    );
  });

  it("keeps a character that lies across the seam of the ring", () => {
    // A tail of four bytes: "CD" is overwritten by the first bytes of "€", "A" by its last one.
    const collector = collected(8, [Buffer.from("headABCD"), Buffer.from("AB"), Buffer.from("€")]);
    expect(textOf(collector.take())).toBe("head\n[… 5 bytes left out …]\nB€");
  });
});
