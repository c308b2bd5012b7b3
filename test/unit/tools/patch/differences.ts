import type { Change } from "../../../../src/tools/patch/patch-format.js";

/** The shortest way from one list of lines to another: the longest common subsequence stays. */
export function differences(before: readonly string[], after: readonly string[]): Change[] {
  const common = commonLengths(before, after);
  const changes: Change[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      changes.push({ kind: "context", text: before[i++]! });
      j++;
    } else if (i < before.length && (j === after.length || common[i + 1]![j]! >= common[i]![j + 1]!))
      changes.push({ kind: "remove", text: before[i++]! });
    else changes.push({ kind: "add", text: after[j++]! });
  }
  return changes;
}

/** For each pair of suffixes how many lines they have in common. */
function commonLengths(before: readonly string[], after: readonly string[]): number[][] {
  const lengths = Array.from({ length: before.length + 1 }, () =>
    new Array<number>(after.length + 1).fill(0),
  );
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i]![j] =
        before[i] === after[j]
          ? lengths[i + 1]![j + 1]! + 1
          : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  return lengths;
}
