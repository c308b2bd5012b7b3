import { parse as parseToml, stringify as stringifyToml } from "smol-toml";
import { parse as parseYaml, stringify as stringifyYaml } from "yaml";

export type Cleaned =
  /** `removed` names the settings that were left out, e.g. `mcp_servers.github.env.GITHUB_TOKEN`. */
  | { kind: "text"; text: string; removed: readonly string[] }
  /** `reason` follows the file's name in a sentence. */
  | { kind: "left-out"; reason: string };

interface Format {
  parse: (text: string) => unknown;
  stringify: (value: unknown) => string;
}

const toml: Format = { parse: (text) => parseToml(text), stringify: (value) => stringifyToml(value) };
const json: Format = { parse: JSON.parse, stringify: (value) => `${JSON.stringify(value, null, 2)}\n` };
const yaml: Format = { parse: (text) => parseYaml(text), stringify: stringifyYaml };

const formats: Readonly<Record<string, Format>> = { toml, json, jsonc: json, yml: yaml, yaml };

const SECRET_NAME =
  /(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|passw(?:or)?d|authorization|bearer|credentials?|cookie)$/i;
/** `{env:NAME}`, `${NAME}` and `$NAME` refer to a value and do not contain it. */
const REFERENCE = /^(?:\{(?:env|file):[^}]*\}|\$\{[A-Za-z0-9_]+\}|\$[A-Za-z0-9_]+)$/;
const KNOWN_TOKENS =
  /\b(?:sk-[A-Za-z0-9_-]{16,}|gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{16}|ya29\.[A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,})|-----BEGIN [A-Z ]*PRIVATE KEY-----/;

/**
 * The text of a configuration file without values that look like credentials: by the name of the setting, by the
 * form of known tokens, or because they contain one of the `secrets`. Nothing can be removed from a file whose format is
 * unknown, or which cannot be parsed, so if it contains anything of that kind, the whole file is left out.
 */
export function withoutCredentials(
  text: string,
  { fileName, secrets }: { fileName: string; secrets: readonly string[] },
): Cleaned {
  const isCredential = (value: string) =>
    KNOWN_TOKENS.test(value) || secrets.some((secret) => secret !== "" && value.includes(secret));
  const format = formats[fileName.slice(fileName.lastIndexOf(".") + 1).toLowerCase()];
  const cleaned = format === undefined ? null : removeFrom(text, format, isCredential);
  const result = cleaned ?? { text, removed: [] };
  if (isCredential(result.text))
    return { kind: "left-out", reason: "contains something that looks like a key or a token" };
  if (cleaned === null && format !== undefined && namesSecret(text))
    return {
      kind: "left-out",
      reason: "cannot be parsed, and has settings whose names are those of secrets",
    };
  return { kind: "text", ...result };
}

/** Null if the text cannot be parsed. The text stays as it is, comments included, if there is nothing to remove. */
function removeFrom(
  text: string,
  format: Format,
  isCredential: (value: string) => boolean,
): { text: string; removed: string[] } | null {
  const removed: string[] = [];
  const clean = (value: unknown, path: string): unknown => {
    if (Array.isArray(value))
      return value.map((one, index) => clean(one, `${path}[${index}]`)).filter(isKept);
    if (typeof value === "string" && isCredential(value)) {
      removed.push(path);
      return undefined;
    }
    if (typeof value !== "object" || value === null || value instanceof Date) return value;
    const entries = Object.entries(value).map(([name, inner]): [string, unknown] => {
      const at = path === "" ? name : `${path}.${name}`;
      if (!isSecretSetting(name, inner)) return [name, clean(inner, at)];
      removed.push(at);
      return [name, undefined];
    });
    return Object.fromEntries(entries.filter(([, inner]) => isKept(inner)));
  };
  try {
    const cleaned = clean(format.parse(text), "");
    return { text: removed.length === 0 ? text : format.stringify(cleaned), removed };
  } catch {
    return null;
  }
}

function isKept(value: unknown): boolean {
  return value !== undefined;
}

function isSecretSetting(name: string, value: unknown): boolean {
  return SECRET_NAME.test(name) && typeof value === "string" && value !== "" && !REFERENCE.test(value);
}

function namesSecret(text: string): boolean {
  return text.split("\n").some((line) => {
    const name = /^\s*["']?([A-Za-z0-9_.-]+)["']?\s*[:=]/.exec(line)?.[1];
    return name !== undefined && SECRET_NAME.test(name);
  });
}
