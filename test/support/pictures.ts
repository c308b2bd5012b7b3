import { createRequire } from "node:module";
import { crc32, deflateSync } from "node:zlib";

/** Whole pictures, which a decoder takes. */
type Photon = typeof import("@silvia-odwyer/photon-node");
type Size = { width: number; height: number };

const photon = (): Photon => createRequire(import.meta.url)("@silvia-odwyer/photon-node") as Photon;

/** The left half red, the right one blue. */
function pixels({ width, height }: Size): Uint8Array {
  const bytes = new Uint8Array(width * height * 4);
  for (let at = 0; at < bytes.length; at += 4)
    bytes.set((at / 4) % width < width / 2 ? [255, 0, 0, 255] : [0, 0, 255, 255], at);
  return bytes;
}

export function pngPicture(size: Size): Buffer {
  return Buffer.from(new (photon().PhotonImage)(pixels(size), size.width, size.height).get_bytes());
}

export function jpegPicture(size: Size): Buffer {
  return Buffer.from(new (photon().PhotonImage)(pixels(size), size.width, size.height).get_bytes_jpeg(90));
}

export function webpPicture(size: Size): Buffer {
  return Buffer.from(new (photon().PhotonImage)(pixels(size), size.width, size.height).get_bytes_webp());
}

/** Two frames of the same. */
export function animatedWebp({ width, height }: Size): Buffer {
  const image = webpPicture({ width, height }).subarray(12);
  const canvas = Buffer.alloc(10);
  canvas[0] = 2;
  canvas.writeUIntLE(width - 1, 4, 3);
  canvas.writeUIntLE(height - 1, 7, 3);
  const place = Buffer.alloc(16);
  place.writeUIntLE(width - 1, 6, 3);
  place.writeUIntLE(height - 1, 9, 3);
  const frame = riffChunk("ANMF", Buffer.concat([place, image]));
  const body = [riffChunk("VP8X", canvas), riffChunk("ANIM", Buffer.alloc(6)), frame, frame];
  return riffChunk("RIFF", Buffer.concat([Buffer.from("WEBP"), ...body]));
}

function riffChunk(name: string, body: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(name);
  head.writeUInt32LE(body.length, 4);
  return Buffer.concat([head, body, Buffer.alloc(body.length % 2)]);
}

/** Uncompressed: the code table is cleared before its codes grow longer. */
export function gifPicture({ width, height, frame = { width, height } }: Size & { frame?: Size }): Buffer {
  const screen = Buffer.alloc(13);
  screen.write("GIF89a");
  screen.writeUInt16LE(width, 6);
  screen.writeUInt16LE(height, 8);
  screen[10] = 0x80 | 6;
  const colours = Buffer.alloc(128 * 3);
  colours[0] = 255;
  colours[5] = 255;
  const descriptor = Buffer.alloc(10);
  descriptor[0] = 0x2c;
  descriptor.writeUInt16LE(frame.width, 5);
  descriptor.writeUInt16LE(frame.height, 7);
  const codes: number[] = [];
  for (let at = 0; at < width * height; at++) {
    if (at % 120 === 0) codes.push(0x80);
    codes.push(at % width < width / 2 ? 0 : 1);
  }
  codes.push(0x81);
  const blocks: Buffer[] = [];
  for (let at = 0; at < codes.length; at += 255) {
    const block = codes.slice(at, at + 255);
    blocks.push(Buffer.from([block.length, ...block]));
  }
  const comment = Buffer.from([0x21, 0xfe, 2, 0x68, 0x69, 0]);
  return Buffer.concat([screen, colours, comment, descriptor, Buffer.of(7), ...blocks, Buffer.of(0, 0x3b)]);
}

/** Black and nothing else, one bit a pixel: a few kilobytes however large it is. */
export function blackPng({ width, height }: Size): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 1;
  const rows = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height));
  const chunks = [pngChunk("IHDR", header), pngChunk("IDAT", rows), pngChunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...chunks]);
}

function pngChunk(name: string, body: Buffer): Buffer {
  const chunk = Buffer.alloc(12 + body.length);
  chunk.writeUInt32BE(body.length, 0);
  chunk.write(name, 4);
  body.copy(chunk, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + body.length)), 8 + body.length);
  return chunk;
}

/** The colour of a pixel, as red, green, blue and alpha. */
export function colourAt(picture: Uint8Array, x: number, y: number): number[] {
  const image = photon().PhotonImage.new_from_byteslice(picture);
  const at = (y * image.get_width() + x) * 4;
  return [...image.get_raw_pixels().subarray(at, at + 4)];
}
