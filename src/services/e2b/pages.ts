import { invalidUsage } from "../../errors.js";

/** One page of a list. */
export interface Page<Item> {
  items: Item[];
  /** What the client asks for the next one with; null for the last one. */
  next: string | null;
}

/** The items after those that the client has, which are in the order of their keys, or in the opposite one. Error: `usage.invalid`. */
export function pageOf<Item>(
  all: readonly Item[],
  {
    keyOf,
    isDescending = false,
    limit,
    nextToken,
  }: { keyOf: (item: Item) => string; isDescending?: boolean; limit: number; nextToken: string | undefined },
): Page<Item> {
  const sign = isDescending ? -1 : 1;
  const compare = (one: string, other: string) => sign * (one < other ? -1 : one > other ? 1 : 0);
  const sorted = all.toSorted((one, other) => compare(keyOf(one), keyOf(other)));
  const after = nextToken === undefined ? null : keyIn(nextToken);
  const left = after === null ? sorted : sorted.filter((item) => compare(keyOf(item), after) > 0);
  const items = left.slice(0, limit);
  const last = items.at(-1);
  const next =
    left.length > limit && last !== undefined ? Buffer.from(keyOf(last)).toString("base64url") : null;
  return { items, next };
}

function keyIn(token: string): string {
  if (/^[A-Za-z0-9_-]+$/.test(token)) return Buffer.from(token, "base64url").toString();
  throw invalidUsage("nextToken is none that was given out", "leave it out for the first page");
}
