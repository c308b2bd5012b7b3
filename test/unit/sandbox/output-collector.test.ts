import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OutputCollector } from "../../../src/output/output-collector.js";

function collected(maxBytes: number, chunks: readonly Uint8Array[]): OutputCollector {
  const collector = new OutputCollector(maxBytes);
  for (const chunk of chunks) collector.push(Buffer.from(chunk));
  return collector;
}

/** A text cut into pieces anywhere, also within a character. */
const choppedText = fc
  .tuple(fc.string({ unit: "grapheme", maxLength: 60 }), fc.array(fc.nat(200), { maxLength: 8 }))
  .map(([text, cuts]) => {
    const bytes = Buffer.from(text);
    const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b);
    return { text, chunks: at.slice(1).map((end, index) => bytes.subarray(at[index], end)) };
  });

describe("what an output collector keeps", () => {
  it("is everything, in order, as long as it fits", () => {
    fc.assert(
      fc.property(choppedText, ({ text, chunks }) => {
        const bytes = Buffer.from(text);
        const collector = collected(bytes.length, chunks);
        expect(collector.text()).toBe(text);
        expect(collector.bytes()).toEqual(bytes);
        expect(collector.omittedBytes).toBe(0);
        expect(collector.totalBytes).toBe(bytes.length);
      }),
    );
  });

  it("is the first and the last half of the budget, however the bytes arrive", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 12 }),
        fc.nat(64),
        (chunks, maxBytes) => {
          const all = Buffer.concat(chunks);
          const collector = collected(maxBytes, chunks);
          const kept =
            all.length <= maxBytes
              ? all
              : Buffer.concat([
                  all.subarray(0, Math.ceil(maxBytes / 2)),
                  all.subarray(all.length - Math.floor(maxBytes / 2)),
                ]);
          expect(collector.bytes()).toEqual(kept);
          expect(collector.omittedBytes).toBe(all.length - kept.length);
        },
      ),
    );
  });

  it("is a copy: the bytes of a chunk may be overwritten once it was pushed", () => {
    const chunk = Buffer.from("abcd");
    const collector = new OutputCollector(6);
    collector.push(chunk);
    collector.push(chunk);
    chunk.fill("x");
    expect(collector.bytes().toString()).toBe("abcbcd");
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
          clone.push(Buffer.from(second));
          expect(original.bytes()).toEqual(collected(maxBytes, [first]).bytes());
          expect(clone.bytes()).toEqual(collected(maxBytes, [first, second]).bytes());
          expect(clone.omittedBytes).toBe(collected(maxBytes, [first, second]).omittedBytes);
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
        const shown = collected(maxBytes, chunks).text();
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
    expect(collector.text()).toBe("head\n[… 5 bytes left out …]\nB€");
  });
});
