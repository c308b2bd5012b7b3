/** A sequence of numbers in [0, 1) that a seed repeats (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A shuffled copy (Fisher-Yates). */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const copy = [...items];
  for (let end = copy.length - 1; end > 0; end--) {
    const other = Math.floor(random() * (end + 1));
    const [a, b] = [copy[end], copy[other]];
    if (a !== undefined && b !== undefined) [copy[end], copy[other]] = [b, a];
  }
  return copy;
}
