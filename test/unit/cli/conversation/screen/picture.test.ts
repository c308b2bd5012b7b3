import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Drawing,
  drawingOf,
  type PictureProtocol,
  readPicture,
} from "../../../../../src/cli/conversation/screen/picture.js";
import { Screen } from "../../../../support/screen.js";

/** A PNG of this size, as far as its header says; `more` bytes follow. */
function png(width: number, height: number, more = 0): string {
  const bytes = Buffer.alloc(24 + more, 7);
  bytes.write("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return `data:image/png;base64,${bytes.toString("base64")}`;
}

const ESC = "\x1b";
const kittyChunk = new RegExp(`${ESC}_G([^;]*);([^${ESC}]*)${ESC}\\\\`, "g");
const gif = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";

interface Shown {
  columns?: number;
  rows?: number;
  cell?: { width: number; height: number } | null;
}

function drawing(
  url: string,
  protocol: PictureProtocol,
  { columns = 80, rows = 24, cell = null }: Shown = {},
): Drawing | null {
  const picture = readPicture(url, "a picture");
  if (picture === null) throw new Error("it is no picture");
  return drawingOf(picture, { protocol, cell, columns, rows });
}

function drawn(url: string, protocol: PictureProtocol, shown: Shown = {}): string | null {
  const { conversion, draw } = drawing(url, protocol, shown) ?? {};
  return conversion === null && draw !== undefined ? draw(null) : null;
}

describe("a picture", () => {
  it("is known by its bytes, not by what it is said to be", () => {
    expect(readPicture(png(640, 480).replace("image/png", "image/jpeg"), "x")).toMatchObject({
      size: { width: 640, height: 480 },
      file: { type: "image/png" },
    });
    expect(readPicture("data:image/png;base64,aGVsbG8gd29ybGQ=", "x")).toBeNull();
    expect(readPicture("https://x.test/a.png", "x")).toBeNull();
  });

  it("is only described if a terminal could choke on it, or if it is no base64", () => {
    expect(readPicture(png(640, 480, 5_000_000), "x")).toMatchObject({ size: { width: 640 }, file: null });
    expect(readPicture(png(60_000, 60_000), "x")).toMatchObject({ size: { width: 60_000 }, file: null });
    expect(readPicture(`${png(640, 480, 90)}\x1b\\\x1b[2J`, "x")).toMatchObject({ file: null });
    expect(drawn(png(640, 480, 5_000_000), "kitty")).toBeNull();
  });

  it.each<[PictureProtocol, string, string | undefined]>([
    ["kitty", png(200, 90), undefined],
    ["kitty", gif, "png"],
    ["iterm2", png(200, 90), undefined],
    ["iterm2", gif, "png"],
    ["sixel", png(200, 90), "pixels"],
    ["sixel", gif, "pixels"],
  ])("is converted where a terminal does not take it as it is: %s", (protocol, url, form) => {
    expect(drawing(url, protocol)?.conversion?.form).toBe(form);
  });
});

describe("a terminal", () => {
  it("gets a picture for kitty in chunks, which together are the file", () => {
    const url = png(640, 480, 10_000);
    const chunks = [...(drawn(url, "kitty") ?? "").matchAll(kittyChunk)];
    expect(chunks.map(([, keys]) => keys)).toEqual([
      "a=T,f=100,q=2,C=1,r=20,m=1",
      "q=2,m=1",
      "q=2,m=1",
      "q=2,m=0",
    ]);
    expect(chunks.map(([, , data]) => data).join("")).toBe(url.split(",")[1]);
    for (const [, , data = ""] of chunks) expect(data.length).toBeLessThanOrEqual(4096);
  });

  it("gets a picture for iTerm2 as one control string", () => {
    const url = png(640, 480, 100);
    expect(drawn(url, "iterm2")).toContain(
      `\x1b]1337;File=inline=1;size=124;height=20;preserveAspectRatio=1;doNotMoveCursor=1:${url.split(",")[1]}\x07`,
    );
  });

  it.each<[string, [number, number], { columns: number; rows: number }, number | null]>([
    ["as high as it is", [200, 90], { columns: 80, rows: 24 }, 5],
    ["at most twenty rows", [600, 3000], { columns: 200, rows: 60 }, 20],
    ["lower than the screen", [600, 3000], { columns: 80, rows: 12 }, 8],
    ["no wider than the screen", [2000, 200], { columns: 42, rows: 24 }, 1],
    ["nothing where it is too wide", [2000, 20], { columns: 42, rows: 24 }, null],
    ["nothing where there are hardly any rows", [200, 200], { columns: 42, rows: 4 }, null],
  ])("shows it %s", (_what, [width, height], size, rows) => {
    const text = drawn(png(width, height), "kitty", size);
    expect(text === null ? null : Number(/,r=(\d+),/.exec(text)?.[1])).toBe(rows);
  });

  const terms = fc.record({
    size: fc.tuple(fc.integer({ min: 1, max: 4096 }), fc.integer({ min: 1, max: 4096 })),
    columns: fc.integer({ min: 1, max: 400 }),
    rows: fc.integer({ min: 1, max: 200 }),
    cell: fc.option(
      fc.record({ width: fc.integer({ min: 4, max: 200 }), height: fc.integer({ min: 4, max: 200 }) }),
    ),
  });

  it("gets sixels that fit into the rows that they are given, whole bands of them, and are no larger than the picture", () => {
    fc.assert(
      fc.property(terms, ({ size: [width, height], cell, ...screen }) => {
        const { conversion, draw } = drawing(png(width, height), "sixel", { ...screen, cell }) ?? {};
        if (!conversion || draw === undefined) return;
        const pixels = Buffer.alloc(conversion.width * conversion.height * 4);
        const rows = cell === null ? 20 : draw(pixels).split("\n").length - 1;
        const { width: cellWidth, height: cellHeight } = cell ?? { width: 6, height: 12 };
        if (cell !== null) expect(rows).toBeLessThanOrEqual(Math.min(20, screen.rows - 4));
        // A cell that is lower than a band has no room for one.
        if (cellHeight * rows >= 6)
          expect(Math.ceil(conversion.height / 6) * 6).toBeLessThanOrEqual(rows * cellHeight);
        expect(conversion.width).toBeLessThanOrEqual(Math.max(1, (screen.columns - 2) * cellWidth));
        expect([conversion.width <= width, conversion.height <= height]).toEqual([true, true]);
        expect(conversion.width * conversion.height).toBeLessThan(420_000);
        const shape = (conversion.width + 1) / conversion.height;
        expect(shape).toBeGreaterThan((width / height) * 0.3);
      }),
    );
  });

  it("finds out itself how many rows sixels take, where the size of its cells is not known", () => {
    const { conversion, draw } = drawing(png(2000, 1000), "sixel", { columns: 200, rows: 60 }) ?? {};
    expect(conversion).toMatchObject({ width: 480, height: 240 });
    const text = draw?.(Buffer.alloc(480 * 240 * 4, 255)) ?? "";
    expect([text.split("\n").length, text.endsWith("\x1b\\\r\n"), text.includes("\x1b8")]).toEqual([
      2,
      true,
      false,
    ]);
  });

  it("is given all of its width, and as few rows as a picture has, where the size of its cells is known", () => {
    const cell = { width: 20, height: 40 };
    const rows = (text: string | null) => Number(/,r=(\d+),/.exec(text ?? "")?.[1]);
    expect(rows(drawn(png(200, 90), "kitty", { cell }))).toBe(3);
    expect(rows(drawn(png(2000, 1000), "kitty", { columns: 42, cell }))).toBe(10);
    expect(rows(drawn(png(2000, 1000), "kitty", { columns: 42 }))).toBe(7);
  });

  it.each<PictureProtocol>(["kitty", "iterm2", "sixel"])(
    "has room for it, also at its lower end, and goes on below it: %s",
    async (protocol) => {
      const screen = new Screen({ rows: 10, cols: 40 });
      const { conversion, draw } =
        drawing(png(60, 60), protocol, { columns: 40, rows: 10, cell: { width: 10, height: 20 } }) ?? {};
      const picture = draw?.(conversion ? Buffer.alloc(conversion.width * conversion.height * 4, 200) : null);
      const before = Array.from({ length: 9 }, (_, n) => `line ${n}\n`).join("");
      await screen.write(`${before}${picture}\nafter\n`.replaceAll("\n", "\r\n"));
      expect(screen.history.slice(8)).toEqual(["line 8", "", "", "", "after", ""]);
      expect(screen.cursor).toEqual({ row: 9, column: 0 });
      expect(screen.deeds).toEqual([]);
    },
  );
});
