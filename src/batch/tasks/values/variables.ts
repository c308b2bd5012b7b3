import type { FaultPlace, TaskNotes } from "../notes/task-notes.js";

/** The variables that tasks may ask for. */
export type Variables = Readonly<Record<string, string | undefined>>;

const reference = /^\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\}$/s;

/**
 * Fills in the values that are a reference as a whole, `${NAME}` or `${NAME:-default}`. Other values stay as they
 * are. A variable that is not set, and has no default, is a fault.
 */
export function filledVariables(
  env: Readonly<Record<string, string>>,
  variables: Variables,
  { notes, place }: { notes: TaskNotes; place: FaultPlace },
): Record<string, string> {
  const filled: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    const [, asked, fallback] = reference.exec(value) ?? [];
    const given =
      asked === undefined ? value : Object.hasOwn(variables, asked) ? variables[asked] : undefined;
    const field = [place.field, name].filter(Boolean).join(".");
    if (given !== undefined && given !== "") {
      filled[name] = given;
      if (asked !== undefined) notes.warn(`${field} is the variable ${asked} of this machine`);
    } else if (asked === undefined || fallback !== undefined) filled[name] = fallback ?? value;
    else
      notes.refuse(`asks for the variable ${asked}, which is not set`, {
        ...place,
        field,
        missingVariable: asked,
        hint: `set ${asked}, or give the task a default: \${${asked}:-value}`,
      });
  }
  return filled;
}
