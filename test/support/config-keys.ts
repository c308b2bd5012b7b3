import { z } from "zod";
import { configSchema } from "../../src/agent/config/config-schema.js";
import { notesOf, unwrapped } from "../../src/agent/config/wrong-value.js";

export interface ConfigKey {
  /** Dotted; a name of one's own is `<name>`. */
  key: string;
  schema: z.ZodType;
  description: string;
}

/** Every key of config.toml that holds a value, without those that brig does nothing with and those of profiles. */
export function configKeys(): ConfigKey[] {
  return keysOf(configSchema, []);
}

function keysOf(schema: z.ZodType, path: readonly string[]): ConfigKey[] {
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodObject)
    return [
      ...Object.entries<z.ZodType>(inner.shape).flatMap(([key, below]) =>
        below === configSchema.shape.profiles ? [] : keysOf(below, [...path, key]),
      ),
      ...(inner.def.catchall instanceof z.ZodObject ? keysOf(inner.def.catchall, [...path, "<name>"]) : []),
    ];
  if (inner instanceof z.ZodRecord && unwrapped(inner.valueType as z.ZodType).inner instanceof z.ZodObject)
    return keysOf(inner.valueType as z.ZodType, [...path, "<name>"]);
  if (inner instanceof z.ZodUnknown) return [];
  return [{ key: path.join("."), schema, description: notesOf(schema).description ?? "" }];
}
