import { basename } from "node:path";
import { z } from "zod";
import { type FaultPlace, shown, type TaskNotes } from "./notes.js";

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

function jsonTable(table: object, levels = MAX_LEVELS): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).map(([key, one]) => [key, jsonValue(one, levels - 1)]));
}

/** What a task says about itself, without what it leaves open. */
export function describedTable(table: object): Record<string, unknown> {
  const given = Object.entries(table).filter(([, value]) => value !== undefined && value !== null);
  return jsonTable(Object.fromEntries(given));
}

const bytesOf: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  t: 1024 ** 4,
};

/** The megabytes of a size such as `2G`, `512m` or `1.5GiB`; a bare number is bytes. Null for no such size. */
export function sizeInMb(text: string): number | null {
  const match = /^(\d{1,15}(?:\.\d{1,6})?) ?(?:([kmgt])(?:i?b)?|b)?$/i.exec(text.trim());
  if (match === null) return null;
  const [, number = "", unit = ""] = match;
  return Math.floor((Number(number) * (bytesOf[unit.toLowerCase()] ?? 1)) / 1024 ** 2);
}

const MAX_CHARACTERS = 200;

/** The name of a task is also the name of a folder of its results. */
export function isTaskName(name: string): boolean {
  return (
    name.length <= MAX_CHARACTERS &&
    /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)?$/.test(name) &&
    !name.includes("..")
  );
}

/** Name for a task that does not give itself one: that of its directory, with "-" for spaces and whatever else names may not have. */
export function nameOfDirectory(directory: string): string {
  return basename(directory).replace(/[^A-Za-z0-9._-]+/g, "-");
}

export const nameRule = "a name consists of letters, digits and ._- with at most one /, as in org/name";

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

/** Whether the first line of a script ends with a carriage return: it would be a part of its interpreter's name, or of its first command. */
export function hasCarriageReturn(script: string): boolean {
  return /^[^\n]*\r\n/.test(script);
}
