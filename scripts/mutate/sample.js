/** So many of them, each equally likely, the same for the same seed. All of them for a count of 0. */
export function drawn(items, { count, seed }) {
  if (count === 0 || count >= items.length) return [...items];
  const random = numbers(seed);
  const left = [...items];
  const chosen = [];
  while (chosen.length < count) chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  return chosen;
}

/** Mulberry32. */
function numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
