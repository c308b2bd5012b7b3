import { z } from "zod";
import { configSchema } from "../config-schema.js";
import { formatKey, type KeyPath, parseKey } from "../key-path.js";
import { isTable } from "../toml-document.js";
import { isUnusedKey } from "../unknown-keys.js";
import { notesOf, unwrapped } from "../wrong-value.js";
import type { LoadedConfig } from "./load-config.js";
import type { ConfigSource } from "./sources.js";

export interface DescribedValue {
  /** Key in TOML syntax. */
  key: string;
  /** Undefined if there is none or it is hidden. */
  value: unknown;
  /** Describes the default if there is no value, or says why the value is hidden. */
  remark: string | null;
  source: ConfigSource;
}

/** Every key with its value and source, and the keys that brig ignores. No secret is among the values. */
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

/** A table that is shown as one value has the source of its first key. */
function sourceOf(key: string, sources: LoadedConfig["sources"]): ConfigSource {
  const [, source] = [...sources].find(([name]) => name === key || name.startsWith(`${key}.`)) ?? [];
  return source ?? { kind: "default" };
}

type SchemaValue = Omit<DescribedValue, "source">;

function describeKey(schema: z.ZodType, value: unknown, path: KeyPath): SchemaValue[] {
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodObject) {
    const shape: Record<string, z.ZodType> = inner.shape;
    const { catchall } = inner.def;
    const others = Object.keys(isTable(value) && catchall !== undefined ? value : {})
      .filter((key) => !Object.hasOwn(shape, key))
      .map((key): [string, z.ZodType] => [key, catchall as z.ZodType]);
    return [...Object.entries(shape), ...others].flatMap(([key, below]) => {
      // The keys of the chosen profile are at the top already.
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

/** A URL may contain a password or a key. */
function withoutSecrets(text: string): string {
  const url = new URL(text);
  if (url.username === "" && url.password === "" && url.search === "") return text;
  return `${url.protocol}//${url.host}${url.pathname} (the rest is hidden)`;
}

/** The keys that brig ignores, without values, which may be secrets. */
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
