export interface ImageSize {
  width: number;
  height: number;
}

/** The size a picture says it has, by its media type; null where it does not get as far. */
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

/** One of three kinds: lossy (VP8), lossless (VP8L), extended (VP8X). */
function webpSize(bytes: Buffer): ImageSize | null {
  if (bytes.length < 30) return null;
  const kind = bytes.toString("latin1", 12, 16);
  if (kind === "VP8 ")
    return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  if (kind === "VP8X") return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (kind !== "VP8L") return null;
  const bits = bytes.readUInt32LE(21);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

/** In the first start-of-frame segment; those before it say how long they are. */
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

/** 0xC0–0xCF but DHT, JPG and DAC. */
function isFrameStart(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

/** A marker without a segment: TEM and RSTn. */
function isBare(marker: number): boolean {
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);
}
