import { z } from "zod";
import type { JsonSchema } from "./tool.js";

/** Keywords that every model endpoint accepts. Defaults and bounds are in the descriptions instead. */
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

export function jsonSchemaOf(parameters: z.ZodObject, hidden: readonly string[] = []): JsonSchema {
  const schema = schemaShape.parse(z.toJSONSchema(parameters, { io: "input" }));
  const offered = Object.entries(schema.properties ?? {}).filter(([name]) => !hidden.includes(name));
  return { ...schema, properties: Object.fromEntries(offered), additionalProperties: false };
}

/**
 * Converts a schema for endpoints and SDKs that accept only strict ones: no additional properties, and every
 * property is required. An optional property becomes nullable, since the tools treat null as absent.
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
