import { z } from "zod";
import { suggest } from "../lib/suggest.js";

/** A warning for each key that the schema does not know, with the key that was probably meant. */
export function unknownKeyWarnings(schema: z.ZodType, value: unknown): string[] {
  return findUnknown(schema, value, []);
}

function findUnknown(schema: z.ZodType, value: unknown, path: readonly string[]): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return findUnknown(schema.unwrap() as z.ZodType, value, path);
  if (typeof value !== "object" || value === null) return [];
  if (schema instanceof z.ZodRecord)
    return Object.entries(value).flatMap(([key, inner]) =>
      findUnknown(schema.valueType as z.ZodType, inner, [...path, key]),
    );
  if (!(schema instanceof z.ZodObject)) return [];
  const shape: Record<string, z.ZodType> = schema.shape;
  return Object.entries(value).flatMap(([key, inner]) => {
    const known = Object.hasOwn(shape, key) ? shape[key] : undefined;
    return known === undefined
      ? [warning([...path, key], suggest(key, Object.keys(shape)))]
      : findUnknown(known, inner, [...path, key]);
  });
}

function warning(path: readonly string[], meant: string | null): string {
  const hint = meant === null ? "" : `; did you mean \`${meant}\`?`;
  return `unknown key \`${path.join(".")}\`${hint}`;
}
