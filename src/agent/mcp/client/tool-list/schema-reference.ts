/** Far more steps than a real reference has. */
const MAX_STEPS = 32;

/**
 * Finds what a reference such as `#/$defs/name` stands for. Undefined if it leads out of the schema, or to
 * nothing.
 */
export function resolveReference(root: unknown, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  const steps = reference.slice(2).split("/", MAX_STEPS + 1);
  if (steps.length > MAX_STEPS) return undefined;
  return steps.reduce<unknown>((value, step) => member(value, decoded(step)), root);
}

function member(value: unknown, name: string | undefined): unknown {
  if (typeof value !== "object" || value === null || name === undefined) return undefined;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}
