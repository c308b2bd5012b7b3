import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { formatBytes } from "../../../../src/lib/bytes.js";
import { imageType } from "../../../../src/lib/image-type.js";
import type { ToolOf } from "../../../../src/tools/catalogue.js";
import { imageSize } from "../../../../src/tools/picture/image-size.js";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import { runs } from "../../../support/fuzz.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";
import { jpegPicture, pngPicture } from "../../../support/pictures.js";
import { gif, jpeg, png, webp } from "./pictures.js";

const directory = mkdtempSync(join(tmpdir(), "brig-view-image-"));
const tools = createToolRegistry(new MemorySandbox(), { cwd: directory });

afterAll(() => {
  rmSync(directory, { recursive: true });
});

const view = (args: Parameters<ToolOf<"view_image">["execute"]>[0]) => tools.get("view_image").execute(args);

function file(name: string, bytes: Uint8Array): string {
  writeFileSync(join(directory, name), bytes);
  return join(directory, name);
}

describe("view_image", () => {
  it.each([
    ["PNG", png(640, 480), "image/png"],
    ["JPEG", jpeg(640, 480), "image/jpeg"],
    ["GIF", gif(640, 480), "image/gif"],
    ["lossy WebP", webp("VP8 ", 640, 480), "image/webp"],
    ["lossless WebP", webp("VP8L", 640, 480), "image/webp"],
    ["extended WebP", webp("VP8X", 640, 480), "image/webp"],
  ])("shows a %s by its content, whatever its name", async (_, bytes, type) => {
    file("picture.txt", bytes);
    expect(await view({ path: "picture.txt" })).toEqual({
      content: `${type}, 640×480, ${bytes.length} B`,
      success: true,
      parts: [
        {
          type: "input_image",
          image_url: `data:${type};base64,${bytes.toString("base64")}`,
          detail: "high",
        },
      ],
    });
  });

  it("makes a picture of more than 2048 pixels a side fit", async () => {
    const bytes = pngPicture({ width: 4096, height: 64 });
    const wide = file("wide", bytes);
    const { content, parts, success } = await view({ path: wide });
    expect(content).toMatch(
      new RegExp(`^image/png, 4096×64, ${formatBytes(bytes.length)}, shown as image/png, 2048×32, .*B$`),
    );
    expect(success).toBe(true);
    expect(parts).toEqual([
      {
        type: "input_image",
        image_url: expect.stringMatching(/^data:image\/png;base64,/),
        detail: "high",
      },
    ]);
    const [shown] = parts ?? [];
    const data = shown?.type === "input_image" ? (shown.image_url.split(",")[1] ?? "") : "";
    expect(imageSize(Buffer.from(data, "base64"), "image/png")).toEqual({ width: 2048, height: 32 });
  });

  it("shows a large picture as it is on request", async () => {
    const bytes = pngPicture({ width: 4096, height: 64 });
    expect(await view({ path: file("wide", bytes), detail: "original" })).toEqual({
      content: `image/png, 4096×64, ${formatBytes(bytes.length)}`,
      success: true,
      parts: [
        {
          type: "input_image",
          image_url: `data:image/png;base64,${bytes.toString("base64")}`,
          detail: "original",
        },
      ],
    });
  });

  it.each([
    [true, undefined, 4096, "original"],
    [true, "high", 4096, "original"],
    [false, undefined, 2048, "high"],
    [false, "original", 2048, "high"],
  ] as const)(
    "goes by what the model takes: original %s, asked %s",
    async (takesOriginalPictures, detail, width, sent) => {
      const own = createToolRegistry(new MemorySandbox(), { cwd: directory, takesOriginalPictures });
      const path = file("wide", pngPicture({ width: 4096, height: 64 }));
      const { parts } = await own.get("view_image").execute({ path, detail });
      const [shown] = parts ?? [];
      if (shown?.type !== "input_image") throw new Error("no picture");
      const data = Buffer.from(shown.image_url.split(",")[1] ?? "", "base64");
      expect([imageSize(data, "image/png")?.width, shown.detail]).toEqual([width, sent]);
    },
  );

  it.each([
    ["missing", "unable to locate image at `PATH`: No such file or directory (os error 2)"],
    [".", "image path `PATH` is not a file"],
    ["/dev/zero", "image path `/dev/zero` is not a file"],
    ["text", "unable to process image at `PATH`: it is no PNG, JPEG, GIF or WebP image"],
    ["empty", "unable to process image at `PATH`: it is no PNG, JPEG, GIF or WebP image"],
    ["cut", "unable to process image at `PATH`: it is cut off or broken (image/png)"],
    ["giant", "unable to process image at `PATH`: it is larger than 64 MiB"],
    ["heavy", "unable to process image at `PATH`: it is larger than 20 MiB"],
    [
      "bomb",
      "unable to process image at `PATH`: it is 30000×30000 pixels, and more than 67108864 cannot be made to fit; make a smaller copy",
    ],
    ["halved", "unable to process image at `PATH`: it is cut off or broken (image/jpeg)"],
  ])("answers for %s with its text", async (path, text) => {
    file("text", Buffer.from("<svg/>"));
    file("empty", Buffer.alloc(0));
    file("cut", png(1, 1).subarray(0, 20));
    truncateSync(file("giant", png(1, 1)), 2 ** 40);
    truncateSync(file("heavy", png(1, 1)), 21 * 1024 * 1024);
    file("bomb", png(30_000, 30_000));
    file("halved", jpegPicture({ width: 4000, height: 16 }).subarray(0, 700));
    const absolute = path === "." ? directory : join(directory, path);
    expect(await view({ path })).toEqual({ content: text.replace("PATH", absolute), success: false });
    truncateSync(join(directory, "giant"), 0);
    truncateSync(join(directory, "heavy"), 0);
  });

  it("knows no other detail", async () => {
    expect(await view({ path: "x", detail: "low" })).toEqual({
      content:
        "view_image.detail only supports `high` or `original`; omit `detail` for default high resized behavior, got `low`",
      success: false,
    });
  });

  it("leaves `..` to the file system", async () => {
    mkdirSync(join(directory, "sub"));
    file("up", png(3, 4));
    expect((await view({ path: "sub/../up" })).content).toMatch(/^image\/png, 3×4, /);
    expect((await view({ path: "nowhere/../up" })).success).toBe(false);
  });
});

describe("the size of a picture", () => {
  it("is read from whatever bytes there are, or is not there", () => {
    const start = fc.constantFrom(png(9, 9), jpeg(9, 9), gif(9, 9), webp("VP8 ", 9, 9), webp("VP8X", 9, 9));
    fc.assert(
      fc.property(start, fc.nat(40), fc.uint8Array({ maxLength: 60 }), (picture, kept, rest) => {
        const bytes = Buffer.concat([picture.subarray(0, kept), rest]);
        const type = imageType(bytes);
        const size = type === null ? null : imageSize(bytes, type);
        expect(size === null || (size.width > 0 && size.height > 0)).toBe(true);
      }),
      { numRuns: runs({ short: 500, deep: 20_000 }) },
    );
  });

  it("is found behind the segments of a camera's JPEG", () => {
    const exif = Buffer.concat([Buffer.from([0xff, 0xe1, 0x01, 0x02]), Buffer.alloc(0x100, 0xff)]);
    const plain = jpeg(30, 20);
    const bytes = Buffer.concat([plain.subarray(0, 2), exif, Buffer.from([0xff]), plain.subarray(2)]);
    expect(imageSize(bytes, "image/jpeg")).toEqual({ width: 30, height: 20 });
  });
});
