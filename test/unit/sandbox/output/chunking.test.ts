import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CapturedOutput,
  countLines,
  keptBytes,
  OutputCapture,
  renderOutput,
  shrinkOutput,
  truncateOutput,
  truncateWithLineCount,
} from "../../../../src/sandbox/output/captured-output.js";
import { appendOutput, emptyFold, foldOf } from "../../../../src/sandbox/output/line-fold.js";

/** Text, broken text and bytes that are none, with many characters of several bytes. */
const anyBytes = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 12 }).map((text) => Buffer.from(text)),
      fc.constantFrom("é", "漢", "👍", "\n", "\ufeff", "\r\n").map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
    ),
    { maxLength: 30 },
  )
  .map((parts) => Buffer.concat(parts));

const anyCuts = fc.array(fc.nat(300), { maxLength: 20 });
const anyLimit = fc.integer({ min: 0, max: 64 });
const anyPolicy = fc.record({
  mode: fc.constantFrom("tokens" as const, "bytes" as const),
  limit: fc.nat(20),
});

function chunksOf<Whole extends { length: number; slice(start: number, end: number): Whole }>(
  whole: Whole,
  cuts: readonly number[],
): Whole[] {
  const edges = [0, ...cuts.map((cut) => Math.min(cut, whole.length)), whole.length].toSorted(
    (a, b) => a - b,
  );
  return edges.slice(1).map((end, index) => whole.slice(edges[index] ?? 0, end));
}

function kept(chunks: readonly Uint8Array[], limitBytes: number): CapturedOutput {
  const capture = new OutputCapture(limitBytes);
  for (const chunk of chunks) capture.push(chunk);
  return capture.take();
}

describe("an output that came in any chunks", () => {
  it("is kept as if it had come at once, with the same gap", () => {
    fc.assert(
      fc.property(anyBytes, anyCuts, anyLimit, (bytes, cuts, limit) => {
        expect(kept(chunksOf(bytes, cuts), limit)).toEqual(kept([bytes], limit));
      }),
      { numRuns: 500 },
    );
  });

  it("is cut to a budget as if it had come at once", () => {
    fc.assert(
      fc.property(anyBytes, anyCuts, anyLimit, anyPolicy, (bytes, cuts, limit, policy) => {
        const [pieces, whole] = [kept(chunksOf(bytes, cuts), limit), kept([bytes], limit)];
        expect(truncateOutput(pieces, policy)).toBe(truncateOutput(whole, policy));
        expect(truncateWithLineCount(pieces, policy)).toBe(truncateWithLineCount(whole, policy));
        expect(shrinkOutput(pieces, policy.limit)).toEqual(shrinkOutput(whole, policy.limit));
      }),
    );
  });

  it("is the text itself where it fits, invalid bytes replaced", () => {
    fc.assert(
      fc.property(anyBytes, anyCuts, (bytes, cuts) => {
        expect(renderOutput(kept(chunksOf(bytes, cuts), bytes.length))).toBe(bytes.toString());
      }),
    );
  });

  it("has its head and its tail around a gap that has all the rest", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), anyCuts, anyLimit, (text, cuts, limit) => {
        const bytes = Buffer.from(text);
        fc.pre(bytes.length > limit);
        const { pieces } = kept(chunksOf(bytes, cuts), limit);
        const at = pieces.findIndex((piece) => typeof piece === "object");
        const [head, tail] = [pieces.slice(0, at).join(""), pieces.slice(at + 1).join("")];
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
        const between = text.slice(head.length, text.length - tail.length);
        expect(pieces[at]).toEqual({
          bytes: Buffer.byteLength(between),
          chars: [...between].length,
          lineFeeds: between.split("\n").length - 1,
        });
        expect(keptBytes({ pieces })).toBeLessThanOrEqual(limit);
        expect(keptBytes({ pieces })).toBeGreaterThan(limit - 7);
        // Without a byte of the tail nobody can tell whether the last line has ended.
        if (limit > 0) expect(countLines({ pieces })).toBe(text.replace(/\n$/, "").split("\n").length);
      }),
      { numRuns: 500 },
    );
  });
});

describe("lines that came in any pieces", () => {
  it("are folded as if they had come at once, also very long ones", () => {
    const anyLines = fc
      .array(fc.tuple(fc.constantFrom("a", "漢", "\n"), fc.constantFrom(1, 2, 500, 1999, 2000, 2001)))
      .map((runs) => runs.map(([unit, times]) => unit.repeat(times)).join(""));
    fc.assert(
      fc.property(anyLines, fc.array(fc.nat(20_000), { maxLength: 12 }), (text, cuts) => {
        expect(chunksOf(text, cuts).reduce(appendOutput, emptyFold)).toEqual(foldOf(text));
      }),
    );
  });
});
