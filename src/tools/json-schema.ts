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
export function jsonSchemaOf(parameters: z.ZodObject): JsonSchema {
  const schema = schemaShape.parse(z.toJSONSchema(parameters, { io: "input" }));
  return { ...schema, properties: schema.properties ?? {}, additionalProperties: false };
}
