import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { imageType } from "../../../../src/lib/image-type.js";
import { type FittedImage, ImageResizer } from "../../../../src/tools/picture/image-resizer.js";
import { imageSize } from "../../../../src/tools/picture/image-size.js";
import { runs } from "../../../support/fuzz.js";
import {
  animatedWebp,
  blackPng,
  colourAt,
  gifPicture,
  jpegPicture,
  pngPicture,
  webpPicture,
} from "../../../support/pictures.js";
import { png, webp } from "./pictures.js";

const resizer = new ImageResizer();
const large = { width: 4096, height: 64 };

async function fitted(bytes: Buffer): Promise<FittedImage> {
  const picture = await resizer.fit(bytes);
  if (picture.kind === "unusable") throw new Error(picture.reason);
  return picture;
}

describe("a picture of more than 2048 pixels a side", () => {
  it.each([
    ["PNG", pngPicture(large), "image/png"],
    ["JPEG", jpegPicture(large), "image/jpeg"],
    ["GIF", gifPicture(large), "image/png"],
    ["WebP", webpPicture(large), "image/png"],
    ["animated WebP", animatedWebp(large), "image/png"],
  ])("is made to fit: a %s", async (_, bytes, type) => {
    const original = imageType(bytes);
    const picture = await fitted(bytes);
    expect(picture).toMatchObject({
      type,
      size: { width: 2048, height: 32 },
      resizedFrom: { type: original, size: large },
    });
    expect(imageType(picture.bytes)).toBe(type);
    expect(imageSize(picture.bytes, type)).toEqual(picture.size);
    const [left, right] = [colourAt(picture.bytes, 100, 16), colourAt(picture.bytes, 1900, 16)];
    expect(left.map((part) => part > 127)).toEqual([true, false, false, true]);
    expect(right.map((part) => part > 127)).toEqual([false, false, true, true]);
  });

  it.each([
    [
      { width: 2049, height: 2048 },
      { width: 2048, height: 2047 },
    ],
    [
      { width: 30, height: 3000 },
      { width: 20, height: 2048 },
    ],
    [
      { width: 40_000, height: 2 },
      { width: 2048, height: 1 },
    ],
  ])("keeps its shape: %j", async (size, expected) => {
    expect((await fitted(blackPng(size))).size).toEqual(expected);
  });

  it("keeps what a JPEG says of its orientation and colours, and nothing else", async () => {
    const segment = (marker: number, text: string) => {
      const body = Buffer.from(text, "latin1");
      return Buffer.concat([Buffer.of(0xff, marker, 0, body.length + 2), body]);
    };
    const jpeg = jpegPicture(large);
    const [exif, profile] = [segment(0xe1, "Exif\0\0MM\0*"), segment(0xe2, "ICC_PROFILE\0\x01\x01profile")];
    const said = Buffer.concat([exif, profile, segment(0xfe, "a comment")]);
    const { bytes } = await fitted(Buffer.concat([jpeg.subarray(0, 2), said, jpeg.subarray(2)]));
    expect(bytes.subarray(2, 2 + exif.length + profile.length)).toEqual(Buffer.concat([exif, profile]));
    expect(bytes.includes("a comment")).toBe(false);
    expect(colourAt(bytes, 100, 16)[0]).toBeGreaterThan(127);
  });

  it("is left as it is on request", async () => {
    const bytes = pngPicture(large);
    const picture = await resizer.fit(bytes, { keepsSize: true });
    expect(picture).toEqual({ kind: "image", type: "image/png", bytes, size: large, resizedFrom: null });
  });

  it("does not stand in the way of others", async () => {
    const all = await Promise.all([pngPicture(large), jpegPicture(large), gifPicture(large)].map(fitted));
    expect(all.map(({ type }) => type)).toEqual(["image/png", "image/jpeg", "image/png"]);
  });
});

describe("a picture that fits", () => {
  it.each([
    ["PNG", pngPicture({ width: 2048, height: 2 })],
    ["JPEG", jpegPicture({ width: 2048, height: 2 })],
    ["GIF", gifPicture({ width: 2048, height: 2 })],
    ["WebP", webpPicture({ width: 2048, height: 2 })],
  ])("is passed through byte for byte: a %s", async (_, bytes) => {
    expect((await fitted(bytes)).bytes).toBe(bytes);
  });
});

describe("a picture that is a trap", () => {
  const tooMany = (size: string) =>
    `it is ${size} pixels, and more than 67108864 cannot be made to fit; make a smaller copy`;

  it.each([
    ["a PNG of a gigapixel", blackPng({ width: 30_000, height: 30_000 }), tooMany("30000×30000")],
    [
      "a PNG that says it is larger than any",
      png(2 ** 31 - 1, 2 ** 31 - 1),
      tooMany("2147483647×2147483647"),
    ],
    [
      "a GIF whose frame is larger than itself",
      gifPicture({ width: 2049, height: 1, frame: { width: 65_535, height: 65_535 } }),
      tooMany("2049×1"),
    ],
    ["a WebP whose frame is larger than itself", hugeFrame(), tooMany("2049×1")],
    ["a WebP without a frame", webp("VP8X", 4000, 4000), "it is cut off or broken (image/webp)"],
    ["a GIF without a frame", gifPicture(large).subarray(0, 400), "it is cut off or broken (image/gif)"],
    ["a PNG without pixels", png(4000, 4000), "it is cut off or broken (image/png)"],
    ["a JPEG that is cut off", jpegPicture(large).subarray(0, 700), "it is cut off or broken (image/jpeg)"],
    ["a WebP that is cut off", webpPicture(large).subarray(0, 100), "it is cut off or broken (image/webp)"],
  ])("is refused: %s", async (_, bytes, reason) => {
    expect(await resizer.fit(bytes)).toEqual({ kind: "unusable", reason });
  });

  it("is given up when it takes too long", async () => {
    const bytes = blackPng({ width: 8000, height: 8000 });
    expect(await new ImageResizer({ maxMs: 50 }).fit(bytes)).toEqual({
      kind: "unusable",
      reason: "making it fit takes longer than 0.05 seconds; make a smaller copy",
    });
  });

  it("is let go when the call is cancelled, and the next one has its turn", async () => {
    const abort = new AbortController();
    const reason = new Error("enough");
    const slow = resizer.fit(blackPng({ width: 8000, height: 8000 }), { signal: abort.signal });
    const next = fitted(pngPicture(large));
    setTimeout(() => abort.abort(reason), 50);
    await expect(slow).rejects.toBe(reason);
    expect((await next).size).toEqual({ width: 2048, height: 32 });
  });

  it("never brings anything down, whatever is changed in it", async () => {
    const pictures = [jpegPicture(large), pngPicture(large), gifPicture(large), animatedWebp(large)];
    const change = fc.record({
      from: fc.constantFrom(...pictures),
      places: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 }),
      kept: fc.nat(100),
    });
    await fc.assert(
      fc.asyncProperty(change, async ({ from, places, kept }) => {
        const bytes = Buffer.from(from.subarray(0, (from.length * (kept + 50)) / 100));
        for (const [at, byte] of places) bytes[at % bytes.length] = byte;
        const picture = await resizer.fit(bytes);
        expect(picture.kind === "unusable" || picture.size.width <= 2048).toBe(true);
      }),
      { numRuns: runs({ short: 10, deep: 300 }) },
    );
  });
});

function hugeFrame(): Buffer {
  const bytes = Buffer.concat([webp("VP8X", 2049, 1), Buffer.alloc(40)]);
  bytes.writeUInt32LE(10, 16);
  bytes.write("VP8L", 30);
  bytes.writeUInt32LE(20, 34);
  bytes[38] = 0x2f;
  bytes.writeUInt32LE(0x0fff_ffff, 39);
  return bytes;
}

describe("a picture of a size that is asked for", () => {
  const wanted = { width: 20, height: 10 };

  it.each([
    ["a PNG", pngPicture(large)],
    ["a JPEG", jpegPicture(large)],
    ["a GIF", gifPicture(large)],
    ["an animated WebP", animatedWebp(large)],
  ])("is made of %s, as pixels or as a PNG", async (_, bytes) => {
    const pixels = await resizer.scale(bytes, { ...wanted, form: "pixels" });
    expect(pixels).toHaveLength(20 * 10 * 4);
    const file = (await resizer.scale(bytes, { ...wanted, form: "png" })) ?? Buffer.alloc(0);
    expect([imageType(file), imageSize(file, "image/png")]).toEqual(["image/png", wanted]);
    for (const [red, , blue] of [colourAt(file, 2, 5), [...(pixels ?? []).slice(5 * 20 * 4 + 8)]])
      expect([(red ?? 0) > 127, (blue ?? 0) > 127]).toEqual([true, false]);
  });

  it("is not made of what is broken, too large or too slow", async () => {
    const form = "pixels";
    expect(await resizer.scale(pngPicture(large).subarray(0, 60), { ...wanted, form })).toBeNull();
    expect(await resizer.scale(Buffer.from("no picture"), { ...wanted, form })).toBeNull();
    expect(await resizer.scale(blackPng({ width: 20_000, height: 20_000 }), { ...wanted, form })).toBeNull();
    const hurried = new ImageResizer({ maxMs: 1 });
    expect(await hurried.scale(blackPng({ width: 8000, height: 8000 }), { ...wanted, form })).toBeNull();
  });
});
