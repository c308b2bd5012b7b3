import fc from "fast-check";

/**
 * How many inputs a random test tries: `npm test` few, the part `random` of `npm run test:all` many, and BRIG_TEST_RUNS says how many for a night. The seed of a
 * failure is printed by fast-check; the input that it found becomes one of the test's fixed cases.
 */
export function runs({ short, deep }: { short: number; deep: number }): number {
  const asked = process.env.BRIG_TEST_RUNS;
  if (asked !== undefined) return Number(asked);
  return process.env.BRIG_TEST_DEEP === "1" ? deep : short;
}

const place = fc.double({ min: 0, max: 1, noNaN: true });
/** Bytes at which parsers decide, and lengths at the ends of what a number can say. */
const telling = [
  ..."\0\n\r\t \"'=[]{}#,.:;\\\x1b\x7f",
  "\xff",
  "\xc3\x28",
  "\xe2\x80\xae",
  "\xff\xff",
  "\xc0\x0c",
];

const edit = fc.oneof(
  fc.record({ kind: fc.constant("flip" as const), at: place, bit: fc.nat(7) }),
  fc.record({ kind: fc.constant("remove" as const), at: place, length: fc.nat(40) }),
  fc.record({ kind: fc.constant("repeat" as const), at: place, length: fc.nat(60), times: fc.nat(4) }),
  fc.record({
    kind: fc.constant("insert" as const),
    at: place,
    text: fc.oneof(fc.constantFrom(...telling), fc.string({ unit: "binary", maxLength: 8 })),
  }),
  fc.record({ kind: fc.constant("end" as const), at: place }),
);

type Edit = typeof edit extends fc.Arbitrary<infer Value> ? Value : never;

/** Good inputs in which a few bytes were changed, removed, repeated, put in or cut off: most of a parser is behind what is right. */
export function nearly(good: readonly Uint8Array[]): fc.Arbitrary<Buffer> {
  return fc
    .tuple(fc.constantFrom(...good), fc.array(edit, { maxLength: 6 }))
    .map(([bytes, edits]) => edits.reduce(edited, Buffer.from(bytes)));
}

function edited(bytes: Buffer, one: Edit): Buffer {
  const at = Math.floor(one.at * bytes.length);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (one.kind) {
    case "flip": {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << one.bit);
      return flipped;
    }
    case "remove":
      return Buffer.concat([before, after.subarray(one.length)]);
    case "repeat": {
      const again = Array.from({ length: one.times }, () => after.subarray(0, one.length));
      return Buffer.concat([before, ...again, after]);
    }
    case "insert":
      return Buffer.concat([before, Buffer.from(one.text, "latin1"), after]);
    case "end":
      return before;
  }
}

/** How often a test of long inputs repeats something: less in `npm test`, where `npm run bench -- --only growth` sees what grows too fast. */
export function repetitions({ short, deep }: { short: number; deep: number }): number {
  return process.env.BRIG_TEST_DEEP === "1" ? deep : short;
}
