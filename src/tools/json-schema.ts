import { z } from "zod";
import type { JsonSchema } from "./tool.js";

/** Keywords a model's endpoint is sure to take; defaults and bounds are told in the descriptions. */
const schemaShape: z.ZodType<JsonSchema> = z.lazy(() =>
  z.object({
    type: z
      .string()
      .transform((type) => (type === "integer" ? "number" : type))
      .optional(),
    description: z.string().optional(),
    enum: z.array(z.unknown()).optional(),
    properties: z.record(z.string(), schemaShape).optional(),
    required: z.array(z.string()).optional(),
    items: schemaShape.optional(),
    additionalProperties: z.union([z.boolean(), schemaShape]).optional(),
  }),
);

/** The JSON Schema of a tool's parameters, as a caller writes them. */
export function jsonSchemaOf(parameters: z.ZodObject, hidden: readonly string[] = []): JsonSchema {
  const schema = schemaShape.parse(z.toJSONSchema(parameters, { io: "input" }));
  const offered = Object.entries(schema.properties ?? {}).filter(([name]) => !hidden.includes(name));
  return { ...schema, properties: Object.fromEntries(offered), additionalProperties: false };
}

/**
 * The same for endpoints and SDKs that take nothing but strict schemas: every property is required, one that was not may be null,
 * which the tools take for left out, and nothing else is allowed.
 */
export function strictSchema(schema: JsonSchema): JsonSchema {
  const items = schema.items === undefined ? {} : { items: strictSchema(schema.items) };
  if (schema.properties === undefined) return { ...schema, ...items };
  const required = new Set(schema.required);
  const properties = Object.entries(schema.properties).map(([name, property]): [string, JsonSchema] => {
    const strict = strictSchema(property);
    return [name, required.has(name) ? strict : nullable(strict)];
  });
  return {
    ...schema,
    ...items,
    properties: Object.fromEntries(properties),
    required: properties.map(([name]) => name),
    additionalProperties: false,
  };
}

function nullable(schema: JsonSchema): JsonSchema {
  return {
    ...schema,
    ...(typeof schema.type === "string" ? { type: [schema.type, "null"] } : {}),
    ...(schema.enum === undefined ? {} : { enum: [...schema.enum, null] }),
  };
}
