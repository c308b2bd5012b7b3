import { imageType } from "../../../lib/image-type.js";
import { type ImageSize, imageSize } from "../../../tools/index.js";
import { BAND_ROWS, sixelPicture } from "./sixel.js";

export interface Picture {
  /** Safe for a terminal. Null if the row above says what it is. */
  name: string | null;
  size: ImageSize;
  /** What a terminal may be sent, which decodes it. Null if that could take too long, or too much memory. */
  file: { type: string; base64: string } | null;
}

/** How a terminal is sent pictures: by the graphics protocol of kitty, by the control string of iTerm2, or as sixels. */
export type PictureProtocol = "kitty" | "iterm2" | "sixel";

/** What is known of a terminal that shows pictures. */
export interface PictureTerminal {
  protocol: PictureProtocol;
  /** The size of a cell in pixels; null if it is not known. */
  cell: ImageSize | null;
  columns: number;
  rows: number;
}

/** Of a file that a terminal is sent, in characters of base64. */
const LONGEST_FILE = (4 * 1024 * 1024 * 4) / 3;
/** How much of a file is searched for its size: the metadata before the size of a JPEG may be long. */
const HEADER_BYTES = 192 * 1024;
/** A small file may stand for a picture that takes gigabytes. */
const MOST_PIXELS = 4096 * 4096;
const MOST_ROWS = 20;
/** A usual cell, as that of the terminals that had sixels first. */
const USUAL_CELL: ImageSize = { width: 10, height: 20 };
/** Sixels are not scaled by the terminal: where the size of its cells is not known, they are made for small ones. */
const SMALL_CELL: ImageSize = { width: 6, height: 12 };
/** Sixels of more pixels would be megabytes. */
const MOST_SIXEL_PIXELS = 400_000;

/** Null for what is no PNG, JPEG, GIF or WebP picture. */
export function readPicture(dataUrl: string, name: string | null): Picture | null {
  const start = /^data:image\/\w+;base64,/.exec(dataUrl)?.[0].length;
  if (start === undefined) return null;
  const header = Buffer.from(dataUrl.slice(start, start + (HEADER_BYTES * 4) / 3), "base64");
  const type = imageType(header);
  const size = type === null ? null : imageSize(header, type);
  if (type === null || size === null) return null;
  const base64 = dataUrl.slice(start);
  const canBeSent =
    base64.length <= LONGEST_FILE &&
    size.width * size.height <= MOST_PIXELS &&
    /^[A-Za-z0-9+/]+={0,2}$/.test(base64);
  return { name, size, file: canBeSent ? { type, base64 } : null };
}

/** How a picture is drawn. */
export interface Drawing {
  /** What has to be made of the file first; null if a terminal takes the file as it is. */
  conversion: (ImageSize & { form: "png" | "pixels" }) | null;
  /**
   * The characters by which a terminal draws it. The cursor has to be at the beginning of a row, and stands in the picture's last row
   * afterwards.
   */
  draw(converted: Buffer | null): string;
}

/** Null for a picture that is not drawn, since it is too large for the screen or the terminal. */
export function drawingOf({ size, file }: Picture, terminal: PictureTerminal): Drawing | null {
  const { protocol, rows: screenRows } = terminal;
  const cell = terminal.cell ?? (protocol === "sixel" ? SMALL_CELL : USUAL_CELL);
  const spared = terminal.cell === null ? SPARED : 0;
  const maxRows = Math.min(MOST_ROWS, screenRows - 4);
  const rows = pictureRows(size, { columns: (terminal.columns - INDENT) * (1 - spared), maxRows, cell });
  if (rows === null || file === null) return null;
  const height = rows * cell.height;
  const placed = (draw: string) => inPlace(draw, rows);
  if (protocol === "sixel") {
    const scaled = sixelSize(size, height);
    const drawn = (pixels: Buffer | null) => sixelPicture(pixels ?? Buffer.alloc(0), scaled);
    return {
      conversion: { ...scaled, form: "pixels" },
      draw: (pixels) => (terminal.cell === null ? inFlow(drawn(pixels)) : placed(drawn(pixels))),
    };
  }
  const draw = protocol === "kitty" ? kittyPicture : itermPicture;
  // An animation would be one small file for any number of pictures.
  const isTaken = file.type === "image/png" || (file.type === "image/jpeg" && protocol === "iterm2");
  return {
    conversion: isTaken ? null : { ...scaledTo(size, height), form: "png" },
    draw: (png) => placed(draw(png === null ? file.base64 : png.toString("base64"), rows)),
  };
}

/** There must be room for it: a picture that makes the screen scroll moves the cursor, on each terminal in another way. */
function inPlace(draw: string, rows: number): string {
  const room = `${"\n".repeat(rows)}\x1b[${rows}A`;
  const below = rows === 1 ? "" : `\x1b[${rows - 1}B`;
  return `${room}\x1b[${INDENT + 1}G\x1b7${draw}\x1b8${below}\r`;
}

/** The terminal itself finds out how many rows it takes. The row after that may be touched by the last band. */
function inFlow(draw: string): string {
  return `\x1b[${INDENT + 1}G${draw}\r\n`;
}

const INDENT = 2;
/** The part of the width that is left free for cells that are narrower than they are taken to be. */
const SPARED = 0.25;

/** Null if it would be wider than the columns even in one row. */
function pictureRows(
  { width, height }: ImageSize,
  { columns, maxRows, cell }: { columns: number; maxRows: number; cell: ImageSize },
): number | null {
  const columnsPerRow = (width / height) * (cell.height / cell.width);
  const widest = Math.floor(columns / columnsPerRow);
  const rows = Math.min(Math.ceil(height / cell.height), maxRows, widest);
  return rows < 1 ? null : rows;
}

/** The picture's own size, or a smaller one that is at most this high. */
function scaledTo({ width, height }: ImageSize, maxHeight: number): ImageSize {
  const scale = Math.min(1, maxHeight / height);
  const side = (pixels: number) => Math.max(1, Math.round(pixels * scale));
  return { width: side(width), height: side(height) };
}

/** Its last band must not reach into the row below. */
function sixelSize(size: ImageSize, roomHeight: number): ImageSize {
  const height = Math.max(1, Math.floor(roomHeight / BAND_ROWS)) * BAND_ROWS;
  const mostHeight = Math.sqrt((MOST_SIXEL_PIXELS * size.height) / size.width);
  return scaledTo(size, Math.min(height, mostHeight));
}

const KITTY_CHUNK = 4096;

/** `f=100` is a PNG; with `C=1` the cursor stays, and with `q=2` nothing is answered. */
function kittyPicture(base64: string, rows: number): string {
  const chunks = base64.match(new RegExp(`.{1,${KITTY_CHUNK}}`, "g")) ?? [];
  return chunks
    .map((chunk, index) => {
      const keys = index === 0 ? `a=T,f=100,q=2,C=1,r=${rows},` : "q=2,";
      return `\x1b_G${keys}m=${index === chunks.length - 1 ? 0 : 1};${chunk}\x1b\\`;
    })
    .join("");
}

function itermPicture(base64: string, rows: number): string {
  const keys = `inline=1;size=${Buffer.byteLength(base64, "base64")};height=${rows};preserveAspectRatio=1`;
  return `\x1b]1337;File=${keys};doNotMoveCursor=1:${base64}\x07`;
}
