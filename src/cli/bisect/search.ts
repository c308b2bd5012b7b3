/** The command's verdict on a state. "skip" means that it cannot tell, "stop" that the search must end. */
export type Verdict = "good" | "bad" | "skip" | "stop";

/** The place where the states change from good to bad. States in between are states that could not be judged. */
export interface Border {
  /** The position of the last state that is known to be good. */
  lastGood: number;
  /** The position of the first state that is known to be bad. */
  firstBad: number;
}

/**
 * Finds the first bad one of `count` states, the first of which is good and the last of which is bad, by trying as few as
 * possible of the others. A state that was skipped is not tried again. Null if the search was stopped.
 */
export async function findBorder(
  count: number,
  judge: (position: number) => Promise<Verdict>,
): Promise<Border | null> {
  const skipped = new Set<number>();
  let [lastGood, firstBad] = [0, count - 1];
  for (;;) {
    const next = nearestToMiddle({ lastGood, firstBad }, skipped);
    if (next === null) return { lastGood, firstBad };
    const verdict = await judge(next);
    if (verdict === "stop") return null;
    if (verdict === "good") lastGood = next;
    else if (verdict === "bad") firstBad = next;
    else skipped.add(next);
  }
}

/** About how many tries are needed for so many states between a good and a bad one. */
export function expectedTries(between: number): number {
  return Math.ceil(Math.log2(between + 1));
}

function nearestToMiddle({ lastGood, firstBad }: Border, skipped: ReadonlySet<number>): number | null {
  const middle = Math.floor((lastGood + firstBad) / 2);
  for (let distance = 0; distance < firstBad - lastGood; distance++)
    for (const position of [middle - distance, middle + distance])
      if (position > lastGood && position < firstBad && !skipped.has(position)) return position;
  return null;
}
