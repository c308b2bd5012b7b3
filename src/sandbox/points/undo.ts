import { restoreInPlace } from "./restore-in-place.js";
import type { UndoneCall } from "./restore-point.js";
import { type TakenPoint, type TreePoints, tooLarge } from "./tree-points.js";

/**
 * Undoes the last call that changed the tree and is not undone yet. Returns null if there is none. Call it
 * only within `alone`. Errors: those of a restore.
 */
export async function undoLast(
  points: TreePoints,
  { signal }: { signal: AbortSignal | undefined },
): Promise<UndoneCall | null> {
  // A change that was not seen yet is undone first.
  const { isFull } = await points.take({ kind: "call", signal });
  if (isFull) throw tooLarge("the state that would be lost cannot be kept");
  const undone = lastCall(points.taken);
  if (undone === null) return null;
  const restores = stateOf(undone.point.number - 1, points.taken);
  const point = await restoreInPlace(points, { number: restores, always: true, signal });
  return point === null ? null : { undone: undone.point, restores, point };
}

function lastCall(taken: readonly TakenPoint[]): TakenPoint | null {
  let number = stateOf(taken.length, taken);
  while (number > 0 && taken[number - 1]?.kind !== "call") number = stateOf(number - 1, taken);
  return taken[number - 1] ?? null;
}

/**
 * The first point that had the state of this one: the point of an undo stands for the point that it restored.
 */
function stateOf(number: number, taken: readonly TakenPoint[]): number {
  let at = number;
  for (let point = taken[at - 1]; point?.restores != null; point = taken[at - 1]) at = point.restores;
  return at;
}
