import type { Environment } from "../../../lib/env.js";
import { imageType } from "../../../lib/image-type.js";
import { type ImageSize, imageSize } from "../../../tools/index.js";

export interface Picture {
  /** Safe for a terminal. Null if the row above says what it is. */
  name: string | null;
  size: ImageSize;
  /** What a terminal may be sent, which decodes it. Null if that could take too long, or too much memory. */
  file: { type: string; base64: string } | null;
}

/** How a terminal is sent pictures: by the graphics protocol of kitty, or by the control string of iTerm2. */
export type PictureProtocol = "kitty" | "iterm2";

/** Of a file that a terminal is sent, in characters of base64. */
const LONGEST_FILE = (4 * 1024 * 1024 * 4) / 3;
/** How much of a file is searched for its size: the metadata before the size of a JPEG may be long. */
const HEADER_BYTES = 192 * 1024;
/** A small file may stand for a picture that takes gigabytes. */
const MOST_PIXELS = 4096 * 4096;
const MOST_ROWS = 20;
/** A usual cell of a terminal, in pixels. A terminal with other cells shows a picture wider or narrower. */
const CELL = { width: 10, height: 20 };

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

/**
 * Null for a terminal that is not known to show pictures. Terminals are known by the variables that they set: an answer to a question
 * would come among the keys, and from a terminal that is slow, as typed text. Programs such as tmux do not pass pictures on.
 */
export function pictureProtocol({ variables, forbidsColor }: Environment): PictureProtocol | null {
  const { TERM = "", TERM_PROGRAM, LC_TERMINAL, TMUX, STY, KONSOLE_VERSION } = variables;
  if (forbidsColor || TMUX !== undefined || STY !== undefined || /^(?:tmux|screen)/.test(TERM)) return null;
  if (TERM === "xterm-kitty" || TERM === "xterm-ghostty") return "kitty";
  // The other variables stay set in a terminal that was started from the one that set them.
  const program = TERM_PROGRAM ?? LC_TERMINAL;
  if (program === undefined) return Number(KONSOLE_VERSION) >= 220_400 ? "kitty" : null;
  return program === "iTerm.app" || program === "iTerm2" || program === "WezTerm" ? "iterm2" : null;
}

/**
 * The characters by which a terminal draws a picture. The cursor has to be at the beginning of a row, and stands in the picture's last row
 * afterwards. Null if the protocol does not take this kind of picture.
 */
export function drawnPicture(
  { size, file }: Picture,
  { protocol, columns, rows: screenRows }: { protocol: PictureProtocol; columns: number; rows: number },
): string | null {
  const rows = pictureRows(size, { columns, maxRows: Math.min(MOST_ROWS, screenRows - 4) });
  if (rows === null || file === null) return null;
  const draw = protocol === "kitty" ? kittyPicture(file, rows) : itermPicture(file, rows);
  if (draw === null) return null;
  // There must be room for it: a picture that makes the screen scroll moves the cursor, on each terminal in another way.
  const room = `${"\n".repeat(rows)}\x1b[${rows}A`;
  const below = rows === 1 ? "" : `\x1b[${rows - 1}B`;
  return `${room}\x1b[${INDENT + 1}G\x1b7${draw}\x1b8${below}\r`;
}

const INDENT = 2;

/** Null if it would be wider than the screen even in one row. */
function pictureRows(
  { width, height }: ImageSize,
  { columns, maxRows }: { columns: number; maxRows: number },
): number | null {
  const columnsPerRow = (width / height) * (CELL.height / CELL.width);
  // A quarter is spared for cells that are narrower than usual.
  const widest = Math.floor(((columns - INDENT) * 0.75) / columnsPerRow);
  const rows = Math.min(Math.ceil(height / CELL.height), maxRows, widest);
  return rows < 1 ? null : rows;
}

const KITTY_CHUNK = 4096;

/** `f=100` is a PNG; with `C=1` the cursor stays, and with `q=2` nothing is answered. */
function kittyPicture({ type, base64 }: NonNullable<Picture["file"]>, rows: number): string | null {
  if (type !== "image/png") return null;
  const chunks = base64.match(new RegExp(`.{1,${KITTY_CHUNK}}`, "g")) ?? [];
  return chunks
    .map((chunk, index) => {
      const keys = index === 0 ? `a=T,f=100,q=2,C=1,r=${rows},` : "q=2,";
      return `\x1b_G${keys}m=${index === chunks.length - 1 ? 0 : 1};${chunk}\x1b\\`;
    })
    .join("");
}

function itermPicture({ type, base64 }: NonNullable<Picture["file"]>, rows: number): string | null {
  // An animation is one small file for any number of pictures.
  if (type !== "image/png" && type !== "image/jpeg") return null;
  const keys = `inline=1;size=${Buffer.byteLength(base64, "base64")};height=${rows};preserveAspectRatio=1`;
  return `\x1b]1337;File=${keys};doNotMoveCursor=1:${base64}\x07`;
}
