export interface ImageSize {
  width: number;
  height: number;
}

/**
 * Reads the size from the header of an image; null if it is cut off. The package image-size does not do: it
 * reads the size of a JPEG from bytes that a decoder skips and knows no frames of GIF and WebP. A limit on a
 * size that differs from the decoder's does not limit memory.
 */
export function imageSize(bytes: Buffer, type: string): ImageSize | null {
  const size = readSize(bytes, type);
  return size !== null && size.width > 0 && size.height > 0 ? size : null;
}

function readSize(bytes: Buffer, type: string): ImageSize | null {
  switch (type) {
    case "image/png":
      return bytes.length < 24 ? null : { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
    case "image/gif":
      return bytes.length < 10 ? null : { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
    case "image/webp":
      return webpSize(bytes);
    default:
      return jpegSize(bytes);
  }
}

/**
 * Returns the bytes that a decoder needs for the first frame, and how many pixels it will allocate: a frame
 * of a GIF or a WebP may be larger than its image. Null if the image is cut off.
 */
export function firstFrame(bytes: Buffer, type: string): { bytes: Buffer; pixels: number } | null {
  const size = imageSize(bytes, type);
  if (size === null) return null;
  if (type === "image/gif") return withFrame(bytes, size, gifFrame(bytes));
  if (type === "image/webp" && isExtendedWebp(bytes)) return withFrame(bytes, size, webpFrame(bytes));
  return { bytes, pixels: size.width * size.height };
}

interface FirstFrame extends ImageSize {
  end: number;
}

function withFrame(bytes: Buffer, size: ImageSize, frame: FirstFrame | null) {
  if (frame === null) return null;
  const pixels = size.width * size.height + frame.width * frame.height;
  return { bytes: bytes.subarray(0, frame.end), pixels };
}

/** The decoder reads the frames of a GIF one by one, so the rest of the file need not be cut off. */
function gifFrame(bytes: Buffer): FirstFrame | null {
  if (bytes.length < 13) return null;
  let at = 13 + colourTableBytes(bytes[10] ?? 0);
  while (at + 10 <= bytes.length) {
    const block = bytes[at];
    if (block === 0x2c)
      return { width: bytes.readUInt16LE(at + 5), height: bytes.readUInt16LE(at + 7), end: bytes.length };
    if (block !== 0x21) return null;
    at += 2;
    while ((bytes[at] ?? 0) > 0) at += 1 + (bytes[at] ?? 0);
    at++;
  }
  return null;
}

function colourTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 << ((flags & 7) + 1);
}

/** The first image of an extended WebP, which may be inside an ANMF chunk. */
function webpFrame(bytes: Buffer): FirstFrame | null {
  for (let at = 12; at + 24 <= bytes.length; ) {
    const end = at + 8 + evenBytes(bytes.readUInt32LE(at + 4));
    const frame =
      chunkName(bytes, at) === "ANMF" ? webpImage(bytes, at + 24, end) : webpImage(bytes, at, end);
    if (frame !== null) return frame;
    at = end;
  }
  return null;
}

/** The image may follow an ALPH chunk with its transparency. */
function webpImage(bytes: Buffer, start: number, end: number): FirstFrame | null {
  for (let at = start; at + 18 <= Math.min(end, bytes.length); ) {
    const size = webpChunkSize(bytes, at);
    if (size !== null) return { ...size, end };
    if (chunkName(bytes, at) !== "ALPH") return null;
    at += 8 + evenBytes(bytes.readUInt32LE(at + 4));
  }
  return null;
}

/** Null if the chunk is neither a lossy (VP8) nor a lossless (VP8L) image. */
function webpChunkSize(bytes: Buffer, at: number): ImageSize | null {
  const name = chunkName(bytes, at);
  if (name === "VP8 ")
    return { width: bytes.readUInt16LE(at + 14) & 0x3fff, height: bytes.readUInt16LE(at + 16) & 0x3fff };
  if (name !== "VP8L") return null;
  const bits = bytes.readUInt32LE(at + 9);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

function chunkName(bytes: Buffer, at: number): string {
  return bytes.toString("latin1", at, at + 4);
}

function evenBytes(length: number): number {
  return length + (length & 1);
}

function webpSize(bytes: Buffer): ImageSize | null {
  if (bytes.length < 30) return null;
  if (isExtendedWebp(bytes))
    return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  return webpChunkSize(bytes, 12);
}

function isExtendedWebp(bytes: Buffer): boolean {
  return chunkName(bytes, 12) === "VP8X";
}

/** The size is in the first start-of-frame segment. */
function jpegSize(bytes: Buffer): ImageSize | null {
  for (let at = 2; at + 9 <= bytes.length; ) {
    if (bytes[at] !== 0xff) return null;
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) at++;
    else if (isFrameStart(marker))
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    else at += 2 + (isBare(marker) ? 0 : Math.max(bytes.readUInt16BE(at + 2), 2));
  }
  return null;
}

/** 0xC0–0xCF except DHT, JPG and DAC. */
function isFrameStart(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

/** TEM and RSTn: markers without a segment. */
function isBare(marker: number): boolean {
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);
}
