import { z } from "zod";
import { shown } from "../notes/fault-text.js";
import type { FaultPlace, TaskNotes } from "../notes/task-notes.js";

export type Table = Readonly<Record<string, unknown>>;

export function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** Null for a value that the schema does not accept; each reason is a fault. Keys that it does not know are warned of. */
export function checkedTable<S extends z.ZodType>(
  schema: S,
  value: unknown,
  { notes, place }: { notes: TaskNotes; place: FaultPlace },
): z.output<S> | null {
  const parsed = schema.safeParse(value, { reportInput: true });
  if (parsed.success) {
    for (const key of unknownKeys(schema, value, []))
      notes.warn(
        `${place.file === undefined ? "" : `${place.file}: `}${shownField(key)} is unknown and left aside`,
      );
    return parsed.data;
  }
  for (const issue of parsed.error.issues)
    notes.refuse(problemOf(issue), { ...place, field: shownField(issue.path) });
  return null;
}

function problemOf(issue: z.core.$ZodIssue): string {
  const given = issue.input === undefined ? null : shown(issue.input);
  switch (issue.code) {
    case "invalid_type":
      return given === null
        ? `is missing: it must be ${nounOf(issue.expected)}`
        : `is ${given} and must be ${nounOf(issue.expected)}`;
    case "invalid_value":
      return `is ${given} and must be one of ${issue.values.map((one) => shown(one)).join(", ")}`;
    case "too_small":
      return `is ${given} and must be ${issue.inclusive ? "at least" : "more than"} ${issue.minimum}`;
    case "unrecognized_keys":
      return `has the unknown key ${issue.keys.map((key) => shown(key)).join(", ")}`;
    default:
      return given === null ? issue.message : `is ${given}: ${issue.message}`;
  }
}

const nouns: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a table",
  record: "a table",
};

function nounOf(expected: string): string {
  return nouns[expected] ?? expected;
}

/** `steps[0].agent.user` */
function shownField(path: readonly PropertyKey[]): string {
  let field = "";
  for (const key of path) {
    if (typeof key === "number") field += `[${key}]`;
    else {
      const name = String(key);
      field += (field === "" ? "" : ".") + (/^[\w-]+$/.test(name) ? name : shown(name));
    }
  }
  return field;
}

function unknownKeys(schema: z.ZodType, value: unknown, path: readonly PropertyKey[]): PropertyKey[][] {
  const inner = withoutWrapping(schema);
  if (inner instanceof z.ZodArray && Array.isArray(value))
    return value.flatMap((one, index) => unknownKeys(inner.element as z.ZodType, one, [...path, index]));
  if (inner instanceof z.ZodUnion) {
    const table = (inner.options as z.ZodType[]).find((option) => option instanceof z.ZodObject);
    return table === undefined ? [] : unknownKeys(table, value, path);
  }
  if (!(inner instanceof z.ZodObject) || !isTable(value)) return [];
  return Object.entries(value).flatMap(([key, one]) => {
    const known: z.ZodType | undefined = Object.hasOwn(inner.shape, key) ? inner.shape[key] : undefined;
    return known === undefined ? [[...path, key]] : unknownKeys(known, one, [...path, key]);
  });
}

function withoutWrapping(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return withoutWrapping(schema.unwrap() as z.ZodType);
  return schema;
}
