import { createHash } from "node:crypto";

/**
 * So many of them, each equally likely, the same for the same seed. All of them for a count of 0. What is drawn depends on the `key` of each alone,
 * so that a sample stays the same when others come or go, and the same faults can be tried again after a change.
 */
export function drawn(items, { count, seed }) {
  if (count === 0 || count >= items.length) return [...items];
  return items
    .map((item) => ({ item, place: createHash("sha256").update(`${seed}\0${item.key}`).digest("hex") }))
    .sort((a, b) => (a.place < b.place ? -1 : 1))
    .slice(0, count)
    .map(({ item }) => item);
}
