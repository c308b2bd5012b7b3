import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sixelPicture } from "../../../../../src/cli/conversation/screen/sixel.js";
import { ImageResizer } from "../../../../../src/tools/picture/image-resizer.js";
import { gifPicture, jpegPicture, pngPicture, webpPicture } from "../../../../support/pictures.js";
import { readSixels } from "../../../../support/sixels.js";

type Pixel = readonly [red: number, green: number, blue: number, opacity: number];

function picture(width: number, height: number, colour: (x: number, y: number) => Pixel) {
  const pixels = new Uint8Array(width * height * 4);
  for (let at = 0; at < width * height; at++) pixels.set(colour(at % width, Math.floor(at / width)), at * 4);
  return { pixels, size: { width, height } };
}

/** The mean and the largest distance of what is shown from what was meant, in one of red, green and blue. */
function distances(shown: Uint8Array, meant: Uint8Array): { mean: number; most: number } {
  const all = [...shown].map((part, at) => Math.abs(part - (meant[at] ?? 0)));
  const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
  return { mean, most: all.reduce((most, one) => Math.max(most, one), 0) };
}

/** Sixels have percents of a colour. */
const ROUNDING = 2;

describe("a picture as sixels", () => {
  it("is shown as it is if it has few colours, at any size, and leaves out what is transparent", () => {
    const colour = fc.tuple(fc.nat(7), fc.nat(7), fc.nat(3), fc.boolean());
    const size = fc.integer({ min: 1, max: 20 });
    fc.assert(
      fc.property(
        size,
        size,
        fc.array(colour, { minLength: 400, maxLength: 400 }),
        (width, height, colours) => {
          const { pixels, size } = picture(width, height, (x, y) => {
            const [red, green, blue, isSeen] = colours[y * width + x] ?? [0, 0, 0, false];
            return isSeen ? [red * 36, green * 36, blue * 80, 255] : [0, 0, 0, 0];
          });
          const shown = readSixels(sixelPicture(pixels, size));
          expect([shown.width, shown.height]).toEqual([width, height]);
          expect(distances(shown.pixels, pixels).most).toBeLessThanOrEqual(ROUNDING);
        },
      ),
    );
  });

  it("has no more than 256 colours, which are near to the ones that were meant", () => {
    const { pixels, size } = picture(256, 128, (x, y) => [x, y * 2, 255 - x, 255]);
    const shown = readSixels(sixelPicture(pixels, size));
    expect(shown.colours).toBe(256);
    expect(distances(shown.pixels, pixels).mean).toBeLessThan(5);
  });

  it("keeps the small part of a picture that is of another colour than all of the rest", () => {
    const { pixels, size } = picture(300, 100, (x, y) =>
      x === 7 && y === 9 ? [255, 0, 0, 255] : [0, x % 256, (y * 5) % 256, 255],
    );
    const at = (9 * 300 + 7) * 4;
    expect([...readSixels(sixelPicture(pixels, size)).pixels.slice(at, at + 3)]).toEqual([255, 0, 0]);
  });

  it("has nothing of a picture that is all transparent", () => {
    const { pixels, size } = picture(5, 7, () => [9, 9, 9, 127]);
    const shown = readSixels(sixelPicture(pixels, size));
    expect([shown.colours, Math.max(...shown.pixels)]).toEqual([0, 0]);
  });

  it.each([
    ["PNG", pngPicture],
    ["JPEG", jpegPicture],
    ["GIF", gifPicture],
    ["WebP", webpPicture],
  ])("is made of a %s file, smaller", async (_, file) => {
    const size = { width: 48, height: 30 };
    const bytes = await new ImageResizer().scale(file({ width: 96, height: 60 }), {
      ...size,
      form: "pixels",
    });
    const { pixels, ...shown } = readSixels(sixelPicture(bytes ?? Buffer.alloc(0), size));
    expect(shown).toMatchObject(size);
    const isRed = (x: number, y: number) => {
      const [red = 0, , blue = 0] = pixels.slice((y * 48 + x) * 4);
      return red - blue;
    };
    expect([isRed(3, 3) > 200, isRed(20, 29) > 200, isRed(44, 3) < -200, isRed(28, 29) < -200]).toEqual([
      ...[true, true, true, true],
    ]);
  });
});
