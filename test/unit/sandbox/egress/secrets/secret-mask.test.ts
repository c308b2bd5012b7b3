import { setTimeout as pause } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SecretMask } from "../../../../../src/sandbox/egress/secrets/secret-mask.js";

const SECRET = "sk-live-7f3a9c0d51e64b2288a1";
const stars = (text: string) => "*".repeat(text.length);
const mask = new SecretMask([{ value: SECRET }]);

/** What a receiver gets of pieces of stdout, as one text for each delivery. */
function receiver(of: SecretMask, fails = false) {
  const pieces: string[] = [];
  const output = of.output((data, isStderr) => {
    if (fails) throw new Error("the receiver fails");
    pieces.push(`${isStderr ? "2:" : ""}${data}`);
  });
  return {
    pieces,
    output,
    take: (text: string, isStderr = false) => output.take(Buffer.from(text), isStderr),
  };
}

describe("the output of a command", () => {
  it("has no secret, wherever its pieces are cut", () => {
    const text = `${SECRET.slice(0, 9)} ${SECRET}${SECRET}, ${Buffer.from(SECRET).toString("hex")} ${SECRET.slice(0, 5)}`;
    const expected = text.replaceAll(SECRET, stars).replace(/[0-9a-f]{56}/, stars);
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: text.length - 1 }), { maxLength: 12 }), (cuts) => {
        const { pieces, output, take } = receiver(mask);
        const ends = [...cuts.toSorted((a, b) => a - b), text.length];
        for (const [at, end] of ends.entries()) take(text.slice(ends[at - 1] ?? 0, end));
        output.end();
        expect(pieces.join("")).toBe(expected);
      }),
    );
  });

  it("is delivered at once where no secret can begin, a prompt without a newline included", () => {
    const { pieces, take } = receiver(mask);
    take("building...\n");
    take("Password: ");
    expect(pieces).toEqual(["building...\n", "Password: "]);
  });

  it("keeps nothing back any more once it cannot be a secret", () => {
    const { pieces, take } = receiver(mask);
    take("sk-live-7f3");
    expect(pieces).toEqual([]);
    take("4");
    expect(pieces).toEqual(["sk-live-7f34"]);
  });

  it("shows few bytes that begin like a secret after a moment, and still masks the rest", async () => {
    const { pieces, output, take } = receiver(mask);
    take("sk");
    while (pieces.length === 0) await pause(5);
    expect(pieces).toEqual(["sk"]);
    take(SECRET.slice(2));
    output.end();
    expect(pieces.join("")).toBe(`sk${stars(SECRET.slice(2))}`);
  });

  it("does not show more than a few bytes of a secret while it waits", async () => {
    const { pieces, output, take } = receiver(mask);
    take(SECRET.slice(0, -1));
    await pause(150);
    expect(pieces).toEqual([]);
    take(SECRET.slice(-1));
    output.end();
    expect(pieces.join("")).toBe(stars(SECRET));
  });

  it("is told apart by its streams", () => {
    const { pieces, output, take } = receiver(mask);
    take(SECRET.slice(0, 12));
    take("a warning\n", true);
    take(SECRET.slice(12));
    output.end();
    expect(pieces).toEqual(["2:a warning\n", stars(SECRET)]);
  });

  it("keeps the order of both streams where only few bytes wait", () => {
    const { pieces, take } = receiver(mask);
    take("s");
    take("e", true);
    take("t");
    expect(pieces).toEqual(["s", "2:e", "t"]);
  });

  it("hands on what its receiver throws while nothing waits for it", async () => {
    const { output, take } = receiver(mask, true);
    take("sk");
    await pause(150);
    expect(() => take("x")).toThrow("the receiver fails");
    expect(() => output.end()).toThrow("the receiver fails");
  });

  it("hides secrets that overlap or begin with each other", () => {
    const both = new SecretMask([{ value: "abcdefgh" }, { value: "abcdefghijkl" }, { value: "kl-mnopqrst" }]);
    const { pieces, output, take } = receiver(both);
    for (const letter of "abcdefghijkl-mnopqrst.") take(letter);
    output.end();
    expect(pieces.join("")).toBe(`${stars("abcdefghijkl-mnopqrst")}.`);
  });
});

describe("a text", () => {
  it("is returned as it is without a secret", () => {
    const text = "nothing \ud800 here";
    expect(mask.text(text)).toBe(text);
  });

  it.each([
    ["in the middle of other characters", `é${SECRET}é`, `é${stars(SECRET)}é`],
    ["cut at its end", `${SECRET.slice(0, -1)}…`, `${stars(SECRET.slice(1))}…`],
    ["cut at its beginning", `…${SECRET.slice(1)}`, `…${stars(SECRET.slice(1))}`],
    [
      "cut in the middle",
      `${SECRET.slice(0, 14)}[…]${SECRET.slice(14)}`,
      `${stars(SECRET.slice(14))}[…]${stars(SECRET.slice(14))}`,
    ],
  ])("has no secret that is %s", (_, text, expected) => {
    expect(mask.text(text)).toBe(expected);
  });

  it("keeps what many keys begin with, such as a placeholder does", () => {
    expect(mask.text("sk-live-placeholder")).toBe("sk-live-placeholder");
  });

  it("is masked in all depths of a value, which keeps its other parts", () => {
    const inner = { list: ["a"], at: new Date(0) };
    const value = { path: `/${SECRET}`, [SECRET]: [{ text: SECRET }, 1, null], inner };
    const masked = mask.within(value);
    expect(masked).toEqual({
      path: `/${stars(SECRET)}`,
      [stars(SECRET)]: [{ text: stars(SECRET) }, 1, null],
      inner,
    });
    expect(masked.inner).toBe(inner);
  });

  it("hides what is added, also in output that has begun, and of a long series the newest", () => {
    const growing = new SecretMask([{ value: SECRET }]);
    const shown: string[] = [];
    const output = growing.output((data) => void shown.push(data.toString()));
    output.take(Buffer.from("1-1-1-1-1- "), false);
    growing.add(["1-1-1-1-1-"]);
    output.take(Buffer.from("1-1-1-1-1-\n"), false);
    output.end();
    expect(shown.join("")).toBe("1-1-1-1-1- **********\n");
    for (let at = 2; at < 50; at++) growing.add([`${at}-`.repeat(5)]);
    expect(growing.text(`${SECRET} 49-49-49-49-49-`)).toBe(`${"*".repeat(SECRET.length)} ${"*".repeat(15)}`);
    expect(growing.bytes(Buffer.from("1-1-1-1-1- ")).toString()).toBe("1-1-1-1-1- ");
  });
});
