import { z } from "zod";
import type { ElicitChoice, ElicitField, ElicitValueKind } from "../../../../tools/index.js";

const MAX_CHOICES = 200;
const MAX_TEXT_CHARS = 1000;

const text = z.string().transform((value) => value.slice(0, MAX_TEXT_CHARS));
const number = z.number().nullish().transform(orNull);
const choices = z.array(z.looseObject({ const: z.string(), title: text.nullish() })).max(MAX_CHOICES);
const plainChoices = z.array(z.string().max(MAX_TEXT_CHARS)).max(MAX_CHOICES);

const common = { title: text.nullish(), description: text.nullish() };

/**
 * Every kind of field that a form may have. Older servers name their choices in `enumNames`, newer ones in
 * `oneOf`.
 */
const fieldSchema = z.union([
  z
    .looseObject({
      ...common,
      type: z.literal("array"),
      items: z.union([z.looseObject({ enum: plainChoices }), z.looseObject({ anyOf: choices })]),
      minItems: number,
      maxItems: number,
      default: z.array(z.string()).nullish(),
    })
    .transform(({ title, description, items, minItems, maxItems, default: preset }) => ({
      title,
      description,
      value: {
        type: "choices" as const,
        choices: "enum" in items ? named(items.enum as string[], []) : titled(items.anyOf as Titled[]),
        minItems,
        maxItems,
        default: preset ?? [],
      },
    })),
  z
    .looseObject({
      ...common,
      enum: plainChoices,
      enumNames: z.array(text).nullish(),
      default: z.string().nullish(),
    })
    .transform((field) => choice(field, named(field.enum, field.enumNames ?? []))),
  z
    .looseObject({ ...common, oneOf: choices, default: z.string().nullish() })
    .transform((field) => choice(field, titled(field.oneOf))),
  z
    .looseObject({
      ...common,
      type: z.literal("string"),
      minLength: number,
      maxLength: number,
      format: text.nullish(),
      default: z.string().nullish(),
    })
    .transform(({ title, description, minLength, maxLength, format, default: preset }) => ({
      title,
      description,
      value: {
        type: "string" as const,
        minLength,
        maxLength,
        format: orNull(format),
        default: orNull(preset),
      },
    })),
  z
    .looseObject({
      ...common,
      type: z.enum(["number", "integer"]),
      minimum: number,
      maximum: number,
      default: number,
    })
    .transform(({ title, description, type, minimum, maximum, default: preset }) => ({
      title,
      description,
      value: { type, minimum, maximum, default: preset },
    })),
  z
    .looseObject({ ...common, type: z.literal("boolean"), default: z.boolean().nullish() })
    .transform(({ title, description, default: preset }) => ({
      title,
      description,
      value: { type: "boolean" as const, default: orNull(preset) },
    })),
]);

interface Titled {
  const: string;
  title?: string | null | undefined;
}

/**
 * Converts the schema of a property into a field of a form. Null for a schema that the protocol does not
 * allow there.
 */
export function fieldOf(
  name: string,
  schema: unknown,
  { isRequired }: { isRequired: boolean },
): ElicitField | null {
  const parsed = fieldSchema.safeParse(schema);
  if (!parsed.success || name.length > MAX_TEXT_CHARS) return null;
  const { title, description, value } = parsed.data;
  return {
    name,
    title: orNull(title),
    description: orNull(description),
    required: isRequired,
    value: value satisfies ElicitValueKind,
  };
}

function choice(
  field: {
    title?: string | null | undefined;
    description?: string | null | undefined;
    default?: string | null | undefined;
  },
  all: readonly ElicitChoice[],
) {
  const { title, description } = field;
  return {
    title,
    description,
    value: { type: "choice" as const, choices: all, default: orNull(field.default) },
  };
}

function named(values: readonly string[], names: readonly string[]): ElicitChoice[] {
  return values.map((value, index) => ({ value, title: names[index] ?? value }));
}

function titled(values: readonly Titled[]): ElicitChoice[] {
  return values.map((one) => ({ value: one.const, title: one.title ?? one.const }));
}

function orNull<T>(value: T | null | undefined): T | null {
  return value ?? null;
}
