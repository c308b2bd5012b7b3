import { z } from "zod";
import { configSchema } from "../config-schema.js";
import { formatKey, type KeyPath, parseKey } from "../file/key-path.js";
import { isTable } from "../file/toml-document.js";
import { isUnusedKey } from "../file/unknown-keys.js";
import type { LoadedConfig } from "./load-config.js";
import { notesOf, unwrapped } from "./schema-words.js";
import type { ConfigSource } from "./sources.js";

/** One value of the configuration, fit to be shown. */
export interface DescribedValue {
  /** As it stands in TOML. */
  key: string;
  /** Undefined where there is none, or where it is not shown. */
  value: unknown;
  /** In words, what holds where there is no value; or why the value is not shown. */
  remark: string | null;
  source: ConfigSource;
}

/** Every key with its value and where that comes from, and those that brig does not use. No secret is among the values. */
export function describeConfig({
  config,
  sources,
}: Pick<LoadedConfig, "config" | "sources">): DescribedValue[] {
  const used = describeKey(configSchema, config, []).map((described) => ({
    ...described,
    remark:
      config.policy !== undefined && described.key === "sandbox_mode" ? "as `policy` says" : described.remark,
    source: sourceOf(described.key, sources),
  }));
  return [...used, ...unusedValues(sources)];
}

/** Of a table that is shown as one value, the source of what comes first in it. */
function sourceOf(key: string, sources: LoadedConfig["sources"]): ConfigSource {
  const [, source] = [...sources].find(([name]) => name === key || name.startsWith(`${key}.`)) ?? [];
  return source ?? { kind: "default" };
}

type SchemaValue = Omit<DescribedValue, "source">;

function describeKey(schema: z.ZodType, value: unknown, path: KeyPath): SchemaValue[] {
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodObject) {
    const shape: Record<string, z.ZodType> = inner.shape;
    return Object.entries(shape).flatMap(([key, below]) => {
      // What the chosen profile says is at the top already.
      if (below === configSchema.shape.profiles) return [];
      return describeKey(below, isTable(value) ? value[key] : undefined, [...path, key]);
    });
  }
  if (inner instanceof z.ZodRecord)
    return Object.entries(isTable(value) ? value : {}).flatMap(([key, below]) =>
      describeKey(inner.valueType as z.ZodType, below, [...path, key]),
    );
  if (inner instanceof z.ZodUnknown) return [];
  const key = formatKey(path);
  const { isSecret = false, fallback = null } = notesOf(schema);
  if (value === undefined) return [{ key, value, remark: fallback }];
  if (isSecret) return [{ key, value: undefined, remark: "hidden" }];
  return [{ key, value: inner instanceof z.ZodURL ? withoutSecrets(String(value)) : value, remark: null }];
}

/** An address may carry a password or a key. */
function withoutSecrets(address: string): string {
  const url = new URL(address);
  if (url.username === "" && url.password === "" && url.search === "") return address;
  return `${url.protocol}//${url.host}${url.pathname} (more is hidden)`;
}

/** Of each key that brig does nothing with, that it is there; what it holds may be secret. */
function unusedValues(sources: LoadedConfig["sources"]): DescribedValue[] {
  const values = new Map<string, DescribedValue>();
  for (const [name, source] of sources) {
    const path = parseKey(name);
    if (path[0] === "profiles") continue;
    const length = path.findIndex((_, index) => isUnusedKey(path.slice(0, index + 1))) + 1;
    const key = formatKey(path.slice(0, length));
    if (length > 0 && !values.has(key))
      values.set(key, { key, value: undefined, remark: "not used by brig", source });
  }
  return [...values.values()];
}
