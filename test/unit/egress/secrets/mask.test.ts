import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formsOf, maskIn, maskStream } from "../../../../src/egress/secrets/mask.js";

const SECRET = 'k+y/"with=odd&signs';
const forms = formsOf(SECRET);

describe("the mask of a secret", () => {
  it.each([
    ["itself", SECRET],
    ["URL", encodeURIComponent(SECRET)],
    ["JSON", JSON.stringify(SECRET).slice(1, -1)],
    ["hex", Buffer.from(SECRET).toString("hex")],
    ["HEX", Buffer.from(SECRET).toString("hex").toUpperCase()],
  ])("hides it as %s", (_, written) => {
    expect(maskIn(Buffer.from(`a ${written} b`), forms).toString()).toBe(`a ${"*".repeat(written.length)} b`);
  });

  it("hides it in Base64, whatever is before and after it", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 9 }), fc.uint8Array({ maxLength: 9 }), (before, after) => {
        const text = Buffer.concat([before, Buffer.from(SECRET), after]).toString("base64");
        const masked = maskIn(Buffer.from(text), forms).toString();
        // Characters at both ends share bits with the neighbours, and are less than a byte of the secret each.
        expect(masked.match(/\*+/)?.[0].length).toBeGreaterThanOrEqual(
          Math.floor((SECRET.length * 8) / 6) - 2,
        );
      }),
    );
  });

  it("finds it wherever a stream is cut, and holds nothing else back", async () => {
    const text = Buffer.from(`${SECRET.slice(0, 5)} ${SECRET}${SECRET} ${SECRET.slice(0, 7)}`);
    const expected = maskIn(Buffer.from(text), forms);
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.integer({ min: 1, max: text.length - 1 }), { maxLength: 10 }),
        async (cuts) => {
          const ends = [...cuts.toSorted((a, b) => a - b), text.length];
          const stream = maskStream(forms);
          for (const [at, end] of ends.entries()) stream.write(text.subarray(ends[at - 1] ?? 0, end));
          stream.end();
          expect(Buffer.concat(await stream.toArray()).toString()).toBe(expected.toString());
        },
      ),
    );
  });

  it("passes the beginning of a stream on before its end", async () => {
    const stream = maskStream(forms);
    stream.write("data: 1\n\n");
    expect(String(stream.read())).toBe("data: 1\n\n");
  });
});
