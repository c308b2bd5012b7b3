const MAX_LEVELS = 32;

/** A value of TOML or YAML as JSON has it: dates and numbers that JSON lacks become text. */
function jsonValue(value: unknown, levels = MAX_LEVELS): unknown {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value !== "object" || value === null) return null;
  if (levels === 0) return "…";
  if (Array.isArray(value)) return value.map((one) => jsonValue(one, levels - 1));
  return jsonTable(value, levels);
}

export function jsonTable(table: object, levels = MAX_LEVELS): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).map(([key, one]) => [key, jsonValue(one, levels - 1)]));
}
