import { z } from "zod";
import type { KeyNotes } from "../config-schema.js";

/** The schema without `optional` and default wrappers, and the default. */
export function unwrapped(schema: z.ZodType): { inner: z.ZodType; defaultValue?: unknown } {
  if (schema instanceof z.ZodOptional) return unwrapped(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    const { inner } = unwrapped(schema.unwrap() as z.ZodType);
    return { inner, defaultValue: schema.def.defaultValue };
  }
  return { inner: schema };
}

export function notesOf(schema: z.ZodType): KeyNotes {
  const own: KeyNotes = schema.meta() ?? {};
  const { inner } = unwrapped(schema);
  return inner === schema ? own : { ...notesOf(inner), ...own };
}

/** The schema of a key, also of one that only a catch-all describes. */
export function memberOf(object: z.ZodObject, key: string): z.ZodType | undefined {
  const shape: Record<string, z.ZodType> = object.shape;
  const { catchall } = object.def;
  if (Object.hasOwn(shape, key)) return shape[key];
  return catchall instanceof z.ZodNever ? undefined : (catchall as z.ZodType | undefined);
}

export function schemaAt(schema: z.ZodType, path: readonly PropertyKey[]): z.ZodType | undefined {
  const [part, ...rest] = path;
  if (part === undefined) return schema;
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodObject) {
    const next = memberOf(inner, String(part));
    return next === undefined ? undefined : schemaAt(next, rest);
  }
  if (inner instanceof z.ZodRecord) return schemaAt(inner.valueType as z.ZodType, rest);
  if (inner instanceof z.ZodArray) return schemaAt(inner.element as z.ZodType, rest);
  if (inner instanceof z.ZodUnion)
    for (const option of inner.options as z.ZodType[]) {
      const found = schemaAt(option, path);
      if (found !== undefined) return found;
    }
  return undefined;
}

/** Describes the permitted values: `an integer, 1 or more`, `low, medium or high`. */
export function describeType(schema: z.ZodType): string {
  const words = alternativesOf(schema);
  return words.length === 1 ? words.join() : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

export function alternativesOf(schema: z.ZodType): string[] {
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodUnion) return (inner.options as z.ZodType[]).flatMap(alternativesOf);
  if (inner instanceof z.ZodEnum) return inner.options.map(String);
  if (inner instanceof z.ZodBoolean) return ["true", "false"];
  return [describeKind(inner)];
}

function describeKind(schema: z.ZodType): string {
  if (schema instanceof z.ZodNumber) return describeNumber(schema);
  if (schema instanceof z.ZodArray)
    return schema.element instanceof z.ZodObject ? "a list of tables" : "a list of strings";
  if (schema instanceof z.ZodObject) return `a table with ${Object.keys(schema.shape).join(", ")}`;
  if (schema instanceof z.ZodRecord)
    return unwrapped(schema.valueType as z.ZodType).inner instanceof z.ZodString
      ? "a table of strings"
      : "a table of tables";
  if (schema instanceof z.ZodPipe) return "a table";
  if (schema instanceof z.ZodURL) return "an http or https URL";
  if (schema instanceof z.ZodString && (schema.minLength ?? 0) > 0) return "a non-empty string";
  return "a string";
}

function describeNumber(schema: z.ZodNumber): string {
  if (schema.format === null)
    return `${takesZero(schema) ? "a number from 0" : "a number above 0, up"} to ${schema.maxValue}`;
  return describeInteger(schema);
}

function takesZero(schema: z.ZodNumber): boolean {
  return schema.safeParse(0).success;
}

function describeInteger({ minValue, maxValue }: z.ZodNumber): string {
  const isBounded = maxValue !== null && maxValue < Number.MAX_SAFE_INTEGER;
  return isBounded ? `an integer from ${minValue} to ${maxValue}` : `an integer, ${minValue} or more`;
}
