/**
 * Checks a value that was read from JSON, and returns it with its type. Throws a `ShapeError`. This is for
 * what every start of a sandbox has to read: loading zod takes longer than the engine does to answer.
 */
export type Shape<T> = (value: unknown, path: string) => T;

/** The type of the value that a shape returns. */
export type Shaped<S> = S extends Shape<infer T> ? T : never;

/** The value is not what was expected. */
export class ShapeError extends Error {
  constructor(path: string, expected: string) {
    super(`${path === "" ? "the value" : path} is not ${expected}`);
  }
}

/** Error: `ShapeError`. */
export function read<T>(shape: Shape<T>, value: unknown): T {
  return shape(value, "");
}

/** Null for a value of another shape. */
export function readOrNull<T>(shape: Shape<T>, value: unknown): T | null {
  try {
    return read(shape, value);
  } catch (error) {
    if (error instanceof ShapeError) return null;
    throw error;
  }
}

export const anything: Shape<unknown> = (value) => value;
export const string: Shape<string> = matching("a string", (value) => typeof value === "string");
export const boolean: Shape<boolean> = matching("true or false", (value) => typeof value === "boolean");
/** JSON can also contain 1e999, which is read as infinity. */
export const number: Shape<number> = matching("a number", (value) => Number.isFinite(value));
export const positiveInteger: Shape<number> = matching(
  "a positive whole number",
  (value) => Number.isSafeInteger(value) && (value as number) > 0,
);

export function stringLike(pattern: RegExp): Shape<string> {
  return matching(`a string like ${pattern}`, (value) => typeof value === "string" && pattern.test(value));
}

export function oneOf<const T extends string>(...values: readonly T[]): Shape<T> {
  return matching(`one of ${values.join(", ")}`, (value) => values.includes(value as T));
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value, path) => (value === null ? null : shape(value, path));
}

/** Null, or missing. */
export function nullish<T>(shape: Shape<T>): Shape<T | null | undefined> {
  return (value, path) => (value === null || value === undefined ? value : shape(value, path));
}

export function array<T>(shape: Shape<T>): Shape<T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw new ShapeError(path, "a list");
    return value.map((one, at) => shape(one, `${path}[${at}]`));
  };
}

/** An object with any keys. */
export function record<T>(shape: Shape<T>): Shape<Record<string, T>> {
  return (value, path) =>
    Object.fromEntries(
      Object.entries(requireObject(value, path)).map(([key, one]) => [key, shape(one, below(path, key))]),
    );
}

type Fields = Record<string, Shape<unknown>>;
type Read<F extends Fields> = { [Key in keyof F]: Shaped<F[Key]> };

/** Other keys are left out. */
export function object<F extends Fields>(fields: F): Shape<Read<F>> {
  const entries = Object.entries(fields);
  return (value, path) => {
    const given = requireObject(value, path);
    const read = entries.map(([key, shape]) => [key, shape(given[key], below(path, key))] as const);
    return Object.fromEntries(read) as Read<F>;
  };
}

/** Other keys are refused. */
export function strictObject<F extends Fields>(fields: F): Shape<Read<F>> {
  const loose = object(fields);
  return (value, path) => {
    const unknown = Object.keys(requireObject(value, path)).find((key) => !Object.hasOwn(fields, key));
    if (unknown !== undefined) throw new ShapeError(below(path, unknown), "a known field");
    return loose(value, path);
  };
}

function matching<T>(expected: string, isSo: (value: unknown) => boolean): Shape<T> {
  return (value, path) => {
    if (isSo(value)) return value as T;
    throw new ShapeError(path, expected);
  };
}

function requireObject(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new ShapeError(path, "an object");
}

function below(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
