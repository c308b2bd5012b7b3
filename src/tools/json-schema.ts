import { z } from "zod";

/** A JSON Schema for the arguments of a tool, with the keywords that brig sends to models. */
export interface JsonSchema {
  type?: string | readonly string[];
  description?: string;
  enum?: readonly unknown[];
  anyOf?: readonly JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
  items?: JsonSchema;
  additionalProperties?: boolean | JsonSchema;
}

export function jsonSchemaOf(parameters: z.ZodObject, hidden: readonly string[] = []): JsonSchema {
  const schema = withKnownKeywords(z.toJSONSchema(parameters, { io: "input" }) as JsonSchema);
  const offered = Object.entries(schema.properties ?? {}).filter(([name]) => !hidden.includes(name));
  return { ...schema, properties: Object.fromEntries(offered), additionalProperties: false };
}

/**
 * Drops all other keywords, which some model endpoints refuse. Descriptions say what defaults and bounds
 * there are.
 */
function withKnownKeywords(schema: JsonSchema): JsonSchema {
  const { type, description, properties, required, items, additionalProperties: others } = schema;
  return {
    ...(type !== undefined && { type: type === "integer" ? "number" : type }),
    ...(description !== undefined && { description }),
    ...(schema.enum !== undefined && { enum: schema.enum }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, property]) => [name, withKnownKeywords(property)]),
      ),
    }),
    ...(required !== undefined && { required }),
    ...(items !== undefined && { items: withKnownKeywords(items) }),
    ...(others !== undefined && {
      additionalProperties: typeof others === "object" ? withKnownKeywords(others) : others,
    }),
  };
}

/**
 * Converts a schema for endpoints and SDKs that accept only strict ones: no additional properties, and every
 * property is required. An optional property becomes nullable, since the tools treat null as absent.
 */
export function strictSchema(schema: JsonSchema): JsonSchema {
  const inside = {
    ...(schema.items === undefined ? {} : { items: strictSchema(schema.items) }),
    ...(schema.anyOf === undefined ? {} : { anyOf: schema.anyOf.map(strictSchema) }),
  };
  if (schema.properties === undefined) return { ...schema, ...inside };
  const required = new Set(schema.required);
  const properties = Object.entries(schema.properties).map(([name, property]): [string, JsonSchema] => {
    const strict = strictSchema(property);
    return [name, required.has(name) ? strict : nullable(strict)];
  });
  return {
    ...schema,
    ...inside,
    properties: Object.fromEntries(properties),
    required: properties.map(([name]) => name),
    additionalProperties: false,
  };
}

function nullable(schema: JsonSchema): JsonSchema {
  return {
    ...schema,
    ...(schema.type === undefined ? {} : { type: withNull([schema.type].flat(), "null") }),
    ...(schema.anyOf === undefined ? {} : { anyOf: [...schema.anyOf, { type: "null" }] }),
    ...(schema.enum === undefined ? {} : { enum: withNull(schema.enum, null) }),
  };
}

function withNull<T>(values: readonly T[], none: T): T[] {
  return values.includes(none) ? [...values] : [...values, none];
}
