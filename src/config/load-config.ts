import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, TomlError } from "smol-toml";
import { z } from "zod";
import { BrigError } from "../errors.js";
import { suggest } from "../lib/suggest.js";
import { type Config, configSchema } from "./config-schema.js";
import type { Environment } from "./env.js";
import { unknownKeyWarnings } from "./unknown-keys.js";

export interface ConfigChoice {
  /** `-p`: the profile whose keys replace the ones above it. Default: the file's own `profile`. */
  profile?: string | undefined;
  /** `-c key=value`: above the file and its profile. */
  overrides?: readonly string[] | undefined;
}

export interface LoadedConfig {
  config: Config;
  /** Where it was read from; null when there is no file. */
  file: string | null;
  /** What a person should know about the file. */
  warnings: string[];
}

type Table = Readonly<Record<string, unknown>>;

/**
 * Reads `config.toml` of `$BRIG_HOME`, or of `$CODEX_HOME` where that has none. No file is an empty one; a file that is there but
 * wrong is `config.invalid`.
 */
export async function loadConfig(
  environment: Pick<Environment, "brigHome" | "codexHome">,
  choice: ConfigChoice = {},
): Promise<LoadedConfig> {
  const found =
    (await readConfigFile(join(environment.brigHome, "config.toml"))) ??
    (await readConfigFile(join(environment.codexHome, "config.toml")));
  const table = found === null ? {} : parseToml(found.text, found.file);
  const overrides = (choice.overrides ?? []).map(parseOverride).reduce(merged, {});
  const layered = withProfile(merged(table, overrides), choice.profile, found?.file ?? "config.toml");
  const whole = merged(layered, overrides);
  return {
    config: checked(whole, found?.file ?? "the configuration"),
    file: found?.file ?? null,
    warnings: [
      ...unknownKeyWarnings(configSchema, table).map((text) => `${found?.file}: ${text}`),
      ...unknownKeyWarnings(configSchema, overrides).map((text) => `-c: ${text}`),
    ],
  };
}

/** `key=value`: a dotted key and a TOML value; a value that is not TOML is taken as a text. */
function parseOverride(assignment: string): Table {
  const at = assignment.indexOf("=");
  const key = assignment.slice(0, at).trim();
  const value = assignment.slice(at + 1).trim();
  const attempts = at < 1 ? [] : [`${key} = ${value}`, `${key} = ${JSON.stringify(value)}`];
  for (const toml of attempts) {
    const table = parseOneLine(toml);
    if (table !== null) return table;
  }
  throw new BrigError(`-c ${assignment} is not key=value`, {
    code: "usage.invalid",
    hint: "for example: -c model_reasoning_effort=high, -c 'sandbox_workspace_write.writable_roots=[\"/data\"]'",
  });
}

function parseOneLine(toml: string): Table | null {
  try {
    return parse(toml);
  } catch (error) {
    if (error instanceof TomlError) return null;
    throw error;
  }
}

async function readConfigFile(file: string): Promise<{ file: string; text: string } | null> {
  try {
    return { file, text: await readFile(file, "utf8") };
  } catch (cause) {
    if (isErrno(cause, "ENOENT") || isErrno(cause, "ENOTDIR")) return null;
    throw new BrigError(`${file} cannot be read`, { code: "config.invalid", cause });
  }
}

function parseToml(text: string, file: string): Table {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [reason] = cause.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw new BrigError(`${file}:${cause.line}:${cause.column}: ${reason}`, {
      code: "config.invalid",
      cause,
    });
  }
}

function withProfile(table: Table, chosen: string | undefined, file: string): Table {
  const name = chosen ?? (typeof table.profile === "string" ? table.profile : undefined);
  if (name === undefined) return table;
  const profiles = isTable(table.profiles) ? table.profiles : {};
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (isTable(profile)) return merged(table, profile);
  const meant = suggest(name, Object.keys(profiles));
  throw new BrigError(`${file} has no profile \`${name}\``, {
    code: "config.invalid",
    hint: meant === null ? `add a table [profiles.${name}]` : `did you mean ${meant}?`,
  });
}

function checked(table: Table, file: string): Config {
  const parsed = configSchema.safeParse(table);
  if (parsed.success) return parsed.data;
  throw new BrigError(`${file} is not a valid configuration:\n${z.prettifyError(parsed.error)}`, {
    code: "config.invalid",
    cause: parsed.error,
  });
}

/** Tables are merged key by key; anything else is replaced. */
function merged(below: Table, above: Table): Table {
  const entries = Object.entries(above).map(([key, value]): [string, unknown] => {
    const old = Object.hasOwn(below, key) ? below[key] : undefined;
    return [key, isTable(old) && isTable(value) ? merged(old, value) : value];
  });
  return { ...below, ...Object.fromEntries(entries) };
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
