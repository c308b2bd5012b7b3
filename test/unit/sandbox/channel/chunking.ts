import fc from "fast-check";

/** Ways to cut a byte stream: where, as parts of its length. */
export const chunking = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 });

/** The bytes in pieces, some of which may be empty. */
export function chunked(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = cuts.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b);
  const starts = [0, ...places];
  return starts.map((start, index) => bytes.subarray(start, starts[index + 1] ?? bytes.length));
}
