/** Deepest nesting of a message. No message of the protocol comes near it. */
const MAX_LEVELS = 64;
/**
 * Number of values that a message may have. No message comes near it, and checking a value takes many times its size in
 * memory.
 */
const MAX_VALUES = 100_000;

/** Says why a JSON value is too deep or too large to be checked as a message; null if it is neither. */
export function shapeProblem(value: unknown): string | null {
  let valuesLeft = MAX_VALUES;
  const isDeep = (inner: unknown, levels: number): boolean => {
    valuesLeft--;
    if (valuesLeft < 0 || typeof inner !== "object" || inner === null) return false;
    if (levels === 0) return true;
    for (const key in inner)
      if (isDeep((inner as Record<string, unknown>)[key], levels - 1)) return true;
      else if (valuesLeft < 0) return false;
    return false;
  };
  if (isDeep(value, MAX_LEVELS)) return `the message is nested more than ${MAX_LEVELS} levels deep`;
  return valuesLeft < 0 ? `the message has more than ${MAX_VALUES} values` : null;
}
