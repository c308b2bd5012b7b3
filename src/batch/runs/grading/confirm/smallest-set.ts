/** Answer of a test to a set of items. Once its budget is used, it may not be asked any more. */
type Answer = boolean | "out-of-budget";

export interface SmallestSet<Item> {
  items: Item[];
  /** False where the budget ended before everything that can be left out was. */
  isSmallest: boolean;
}

/**
 * A smallest part of some items with which a test still succeeds, given that it fails with none and succeeds with all of them: no
 * item of it can be left out. By halving (QuickXplain), so that few of many items take about two tests for each halving.
 */
export async function smallestSet<Item>(
  items: readonly Item[],
  test: (part: readonly Item[]) => Promise<Answer>,
): Promise<SmallestSet<Item>> {
  let isSmallest = true;
  const succeeds = async (part: readonly Item[]) => {
    const answer = await test(part);
    if (answer === "out-of-budget") isSmallest = false;
    return answer === true;
  };
  /** The items of `candidates` that are needed besides `base`. */
  const needed = async (
    base: readonly Item[],
    candidates: readonly Item[],
    { isBaseNew }: { isBaseNew: boolean },
  ): Promise<Item[]> => {
    if (isBaseNew && (await succeeds(base))) return [];
    if (candidates.length <= 1) return [...candidates];
    const middle = Math.ceil(candidates.length / 2);
    const [first, second] = [candidates.slice(0, middle), candidates.slice(middle)];
    const ofSecond = await needed([...base, ...first], second, { isBaseNew: true });
    const ofFirst = await needed([...base, ...ofSecond], first, { isBaseNew: ofSecond.length > 0 });
    return [...ofFirst, ...ofSecond];
  };
  const found = await needed([], items, { isBaseNew: false });
  return { items: found, isSmallest };
}
