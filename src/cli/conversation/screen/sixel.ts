import type { ImageSize } from "../../../tools/index.js";

/** Each character stands for six pixels of a column, one above the other. */
export const BAND_ROWS = 6;
const MOST_COLOURS = 256;
/** A pixel that is less opaque is left as it is on the screen. */
const OPAQUE = 128;

/** A picture as sixels, of pixels with four bytes each: red, green, blue and opacity. */
export function sixelPicture(pixels: Uint8Array, { width, height }: ImageSize): string {
  const { colours, colourOf } = paletteOf(pixels);
  const registers = colours.map((colour, at) => `#${at};2;${colour.map(percent).join(";")}`);
  const bands: string[] = [];
  for (let top = 0; top < height; top += BAND_ROWS)
    bands.push(band(pixels, { width, top, rows: Math.min(BAND_ROWS, height - top), colourOf }));
  // With the 1, what no sixel covers stays as it is. No line feed follows the last band: it could make the screen scroll.
  return `\x1bP0;1;0q"1;1;${width};${height}${registers.join("")}${bands.join("-")}\x1b\\`;
}

function percent(part: number): number {
  return Math.round((part * 100) / 255);
}

interface Band {
  width: number;
  top: number;
  rows: number;
  colourOf: Uint8Array;
}

/** Draws each colour of the band from its left edge on. */
function band(pixels: Uint8Array, { width, top, rows, colourOf }: Band): string {
  const columnsOf: (Uint8Array | undefined)[] = new Array(MOST_COLOURS).fill(undefined);
  for (let row = 0; row < rows; row++)
    for (let x = 0; x < width; x++) {
      const at = ((top + row) * width + x) * 4;
      if (!isSeen(pixels, at)) continue;
      const colour = colourOf[bucketOf(pixels, at)] ?? 0;
      columnsOf[colour] ??= new Uint8Array(width);
      const columns = columnsOf[colour];
      columns[x] = (columns[x] ?? 0) | (1 << row);
    }
  return columnsOf
    .flatMap((columns, colour) => (columns === undefined ? [] : [`#${colour}${runsOf(columns)}`]))
    .join("$");
}

function runsOf(columns: Uint8Array): string {
  let text = "";
  for (let at = 0; at < columns.length; ) {
    const bits = columns[at] ?? 0;
    let end = at + 1;
    while (end < columns.length && columns[end] === bits) end++;
    const sixel = String.fromCharCode(63 + bits);
    // What is empty up to the right edge need not be said.
    if (bits !== 0 || end < columns.length)
      text += end - at > 3 ? `!${end - at}${sixel}` : sixel.repeat(end - at);
    at = end;
  }
  return text;
}

function isSeen(pixels: Uint8Array, at: number): boolean {
  return (pixels[at + 3] ?? 0) >= OPAQUE;
}

/** Five bits of each of red, green and blue: what a bucket has in common. */
const BUCKETS = 1 << 15;

function bucketOf(pixels: Uint8Array, at: number): number {
  const [red, green, blue] = [pixels[at] ?? 0, pixels[at + 1] ?? 0, pixels[at + 2] ?? 0];
  return ((red >> 3) << 10) | ((green >> 3) << 5) | (blue >> 3);
}

type Colour = readonly [red: number, green: number, blue: number];

interface Bucket {
  index: number;
  count: number;
  /** The mean of its pixels. */
  colour: Colour;
}

/** Chooses colours by median cut: what differs most, weighed by how many pixels it has, is halved until there are enough colours. */
function paletteOf(pixels: Uint8Array): { colours: Colour[]; colourOf: Uint8Array } {
  const boxes = [boxOf(bucketsOf(pixels))];
  while (boxes.length < MOST_COLOURS) {
    const widest = boxes.reduce((best, box) => (box.weight > best.weight ? box : best));
    if (widest.weight === 0) break;
    const [low, high] = halvesOf(widest);
    boxes[boxes.indexOf(widest)] = boxOf(low);
    boxes.push(boxOf(high));
  }
  const colourOf = new Uint8Array(BUCKETS);
  for (const [at, { buckets }] of boxes.entries()) for (const { index } of buckets) colourOf[index] = at;
  return { colours: boxes.filter(({ buckets }) => buckets.length > 0).map(meanOf), colourOf };
}

function bucketsOf(pixels: Uint8Array): Bucket[] {
  const counts = new Uint32Array(BUCKETS);
  const sums = new Float64Array(BUCKETS * 3);
  for (let at = 0; at + 4 <= pixels.length; at += 4) {
    if (!isSeen(pixels, at)) continue;
    const index = bucketOf(pixels, at);
    counts[index] = (counts[index] ?? 0) + 1;
    for (let part = 0; part < 3; part++)
      sums[index * 3 + part] = (sums[index * 3 + part] ?? 0) + (pixels[at + part] ?? 0);
  }
  const buckets: Bucket[] = [];
  for (const [index, count] of counts.entries()) {
    const mean = (part: number) => (sums[index * 3 + part] ?? 0) / count;
    if (count > 0) buckets.push({ index, count, colour: [mean(0), mean(1), mean(2)] });
  }
  return buckets;
}

interface Box {
  buckets: Bucket[];
  /** In which of red, green and blue the colours differ most. */
  part: 0 | 1 | 2;
  /** 0 if it cannot be halved. */
  weight: number;
}

function boxOf(buckets: Bucket[]): Box {
  const spread = (part: number) => {
    let [least, most] = [255, 0];
    for (const { colour } of buckets) {
      least = Math.min(least, colour[part] ?? 0);
      most = Math.max(most, colour[part] ?? 0);
    }
    return most - least;
  };
  const spreads = [spread(0), spread(1), spread(2)];
  const widest = Math.max(...spreads);
  const part = spreads.indexOf(widest) as Box["part"];
  const count = buckets.reduce((sum, one) => sum + one.count, 0);
  return { buckets, part, weight: buckets.length < 2 ? 0 : widest * count };
}

/** Both have at least one bucket. */
function halvesOf({ buckets, part }: Box): [Bucket[], Bucket[]] {
  const sorted = buckets.toSorted((one, other) => one.colour[part] - other.colour[part]);
  const half = sorted.reduce((sum, { count }) => sum + count, 0) / 2;
  let [at, seen] = [0, 0];
  while (at < sorted.length - 1 && (at === 0 || seen < half)) seen += sorted[at++]?.count ?? 0;
  return [sorted.slice(0, at), sorted.slice(at)];
}

function meanOf({ buckets }: Box): Colour {
  const count = buckets.reduce((sum, one) => sum + one.count, 0);
  const mean = (part: 0 | 1 | 2) =>
    buckets.reduce((sum, one) => sum + one.colour[part] * one.count, 0) / count;
  return [mean(0), mean(1), mean(2)];
}
