import { trim, trimEnd } from "./white-space.js";

export interface SearchRange {
  from: number;
  isAtEnd: boolean;
}

/** Two lines match if this is the same for both. */
export type Normalise = (line: string) => string;

/** From strict to lax. A strict match anywhere wins over a lax one before it. */
export const patchPasses: readonly Normalise[] = [
  (line) => line,
  trimEnd,
  trim,
  (line) => foldPunctuation(trim(line)),
];

/** Finds blocks of lines in a file. Each search takes linear time. */
export class LineSearch {
  readonly #lines: readonly string[];
  readonly #passes: readonly LinePass[];

  constructor(lines: readonly string[], passes: readonly Normalise[]) {
    this.#lines = lines;
    this.#passes = passes.map((normalise) => new LinePass(lines, normalise));
  }

  /** Returns the index of the first line of the block, or null. An empty block is at `from`. */
  find(block: readonly string[], { from, isAtEnd }: SearchRange): number | null {
    if (block.length === 0) return from;
    const start = isAtEnd ? Math.max(from, this.#lines.length - block.length) : from;
    if (start + block.length > this.#lines.length) return null;
    for (const pass of this.#passes) {
      const [found] = pass.matches(block, start);
      if (found !== undefined) return found;
    }
    return null;
  }

  /** Returns the match nearest to `near`, by the strictest pass that has any, and the index of that pass. */
  findNear(
    block: readonly string[],
    { from, near }: { from: number; near: number },
  ): { at: number; pass: number } | null {
    for (const [number, pass] of this.#passes.entries()) {
      const at = nearest(pass.matches(block, from), near);
      if (at !== null) return { at, pass: number };
    }
    return null;
  }
}

function nearest(places: Iterable<number>, wanted: number): number | null {
  let best: number | null = null;
  for (const place of places) {
    if (best !== null && Math.abs(place - wanted) >= Math.abs(best - wanted)) break;
    best = place;
  }
  return best;
}

/** Searches with one way to compare lines. Equal lines get equal numbers, so that comparisons are fast. */
class LinePass {
  readonly #lines: readonly string[];
  readonly #normalise: Normalise;
  #indexed: { numbers: ReadonlyMap<string, number>; file: Int32Array } | null = null;

  constructor(lines: readonly string[], normalise: Normalise) {
    this.#lines = lines;
    this.#normalise = normalise;
  }

  /** All matches from `from` on, in order, by the algorithm of Knuth, Morris and Pratt. */
  *matches(block: readonly string[], from: number): Generator<number> {
    const { numbers, file } = this.#index();
    const wanted = Int32Array.from(block, (line) => numbers.get(this.#normalise(line)) ?? -1);
    if (wanted.length === 0 || wanted.includes(-1)) return;
    const fallback = borders(wanted);
    let matched = 0;
    for (let at = from; at < file.length; at++) {
      while (matched > 0 && (matched === wanted.length || wanted[matched] !== file[at]))
        matched = fallback[matched - 1] ?? 0;
      if (wanted[matched] === file[at]) matched++;
      if (matched === wanted.length) yield at + 1 - matched;
    }
  }

  #index() {
    if (this.#indexed !== null) return this.#indexed;
    const numbers = new Map<string, number>();
    const file = Int32Array.from(this.#lines, (line) => {
      const normal = this.#normalise(line);
      const number = numbers.get(normal) ?? numbers.size;
      numbers.set(normal, number);
      return number;
    });
    this.#indexed = { numbers, file };
    return this.#indexed;
  }
}

/** For each prefix, the length of its longest proper prefix that is also its suffix. */
function borders(wanted: Int32Array): Int32Array {
  const lengths = new Int32Array(wanted.length);
  let length = 0;
  for (let at = 1; at < wanted.length; at++) {
    while (length > 0 && wanted[length] !== wanted[at]) length = lengths[length - 1] ?? 0;
    if (wanted[length] === wanted[at]) length++;
    lengths[at] = length;
  }
  return lengths;
}

/** Replaces typographic dashes, quotes and spaces by ASCII characters. */
function foldPunctuation(line: string): string {
  return line
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u2018-\u201b]/g, "'")
    .replace(/[\u201c-\u201f]/g, '"')
    .replace(/[\u00a0\u2002-\u200a\u202f\u205f\u3000]/g, " ");
}
