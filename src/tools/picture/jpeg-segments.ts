const EXIF = { marker: 0xe1, name: "Exif\0" };
const COLOUR_PROFILE = { marker: 0xe2, name: "ICC_PROFILE\0" };
const START_OF_SCAN = 0xda;

/** Copies the colour profile and the orientation. Photos of phones are often stored rotated. */
export function withMetadata(jpeg: Buffer, original: Buffer): Buffer {
  return Buffer.concat([jpeg.subarray(0, 2), ...metadata(original), jpeg.subarray(2)]);
}

function metadata(jpeg: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 2; at + 4 <= jpeg.length && jpeg[at] === 0xff && jpeg[at + 1] !== START_OF_SCAN; ) {
    const end = at + 2 + jpeg.readUInt16BE(at + 2);
    const segment = jpeg.subarray(at, end);
    if (end <= jpeg.length && (is(segment, EXIF) || is(segment, COLOUR_PROFILE))) found.push(segment);
    at = Math.max(end, at + 4);
  }
  return found;
}

function is(segment: Buffer, { marker, name }: { marker: number; name: string }): boolean {
  return segment[1] === marker && segment.toString("latin1", 4, 4 + name.length) === name;
}
