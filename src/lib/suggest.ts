/** The candidate with the fewest typos, if at most a third of its letters are wrong. */
export function suggest(word: string, candidates: Iterable<string>): string | null {
  let best: string | null = null;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const slips = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (slips < fewest && slips <= Math.max(1, Math.floor(candidate.length / 3))) {
      best = candidate;
      fewest = slips;
    }
  }
  return best;
}

/**
 * The number of inserted, deleted, replaced and swapped characters. Not fastest-levenshtein: it counts a
 * swap, the most common typo, as two.
 */
function editDistance(from: string, to: string): number {
  let twoAbove: number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwap =
        row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        cell(above, column) + 1,
        cell(current, column - 1) + 1,
        cell(above, column - 1) + (isSame ? 0 : 1),
        isSwap ? cell(twoAbove, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    twoAbove = above;
    above = current;
  }
  return cell(above, to.length);
}

function cell(row: number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
