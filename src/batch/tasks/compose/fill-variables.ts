import type { TaskNotes } from "../notes/task-notes.js";
import { isTable } from "../values/checked-table.js";
import type { Variables } from "../values/variables.js";
import { interpolated } from "./interpolate.js";
import type { VariableSettings } from "./schema.js";

/** The value with all variables in its texts filled in. Keys are left as they are. */
export function interpolatedValue(
  value: unknown,
  variables: Variables,
  place: { notes: TaskNotes; file: string },
): unknown {
  if (typeof value === "string") {
    const result = interpolated(value, variables);
    if (result.kind === "text") return result.text;
    const { reason, missingVariable } = result;
    place.notes.refuse(reason, {
      file: place.file,
      ...(missingVariable === undefined ? {} : { missingVariable }),
    });
    return "";
  }
  if (Array.isArray(value)) return value.map((one) => interpolatedValue(one, variables, place));
  if (!isTable(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, interpolatedValue(one, variables, place)]),
  );
}

/** A variable that is named without a value is taken from outside, and left out if it is not set there. */
export function filledVariables(
  settings: VariableSettings,
  {
    options,
    file,
    field,
  }: { options: { variables: Variables; notes: TaskNotes }; file: string; field: string },
): Record<string, string> {
  const filled: Record<string, string> = {};
  for (const [name, value] of pairsOf(settings)) {
    const given = value ?? (Object.hasOwn(options.variables, name) ? options.variables[name] : undefined);
    if (given !== undefined) filled[name] = given;
    else options.notes.warn(`${file}: ${field}: the variable ${name} is not set and left out`);
  }
  return filled;
}

function pairsOf(settings: VariableSettings): [string, string | null][] {
  if (!Array.isArray(settings))
    return Object.entries(settings).map(([name, value]) => [name, value === null ? null : String(value)]);
  return settings.map((line) => {
    const at = line.indexOf("=");
    return at === -1 ? [line, null] : [line.slice(0, at), line.slice(at + 1)];
  });
}
