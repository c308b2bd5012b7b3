import { z } from "zod";
import { BrigError } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";
import type { KeyNotes } from "./config-schema.js";
import { formatKey, type KeyPath } from "./key-path.js";
import { isTree, nodeAt, type SettingTree, sourceAt } from "./settings/setting-tree.js";
import { describeSource } from "./settings/sources.js";
import { isTable } from "./toml-document.js";

const SHOWN_CHARS = 60;

interface Wrong {
  schema: z.ZodType;
  tree: SettingTree;
}

/** A `config.invalid` that says for each wrong value its place, its key, what it is and what it must be. */
export function wrongValues(error: z.ZodError, wrong: Wrong): BrigError {
  const issues = error.issues.flatMap((issue) => innermost(issue, []));
  const hints = issues.map((issue) => hintFor(issue, wrong)).filter((hint) => hint !== undefined);
  return new BrigError(issues.map((issue) => sentence(issue, wrong)).join("\n"), {
    code: "config.invalid",
    hint: hints[0],
    cause: error,
  });
}

interface Issue {
  path: readonly (string | number)[];
  message: string;
  isOwnMessage: boolean;
}

/** Finds the innermost problems. For a union with a table in it these are inside the table, rather than that nothing matches. */
function innermost(issue: z.core.$ZodIssue, above: readonly (string | number)[]): Issue[] {
  const path = [...above, ...(issue.path as (string | number)[])];
  if (issue.code === "invalid_union") {
    const inside = issue.errors.find((branch) => branch.some(({ path: inner }) => inner.length > 0));
    if (inside !== undefined) return inside.flatMap((inner) => innermost(inner, path));
  }
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({ path: [...path, key], message: "", isOwnMessage: false }));
  const message = issue.code === "invalid_key" ? issue.issues[0]?.message : issue.message;
  return [
    { path, message: message ?? "", isOwnMessage: issue.code === "custom" || issue.code === "invalid_key" },
  ];
}

function sentence(issue: Issue, { schema, tree }: Wrong): string {
  const where = describeSource(sourceAt(tree, issue.path.map(String)));
  const expected = schemaAt(schema, issue.path);
  if (expected === undefined) return `${where}: there is no key ${formatKey(issue.path)}`;
  const value = valueAt(tree, issue.path);
  const given = mayBeSecret(expected, value) ? "of a wrong kind" : shown(value);
  const demand = issue.isOwnMessage ? issue.message : `it must be ${describeType(expected)}`;
  return `${where}: ${formatKey(issue.path)} is ${given}: ${demand}`;
}

/** A URL may contain a password or a key. */
function mayBeSecret(expected: z.ZodType, value: unknown): boolean {
  if (notesOf(expected).isSecret) return true;
  return unwrapped(expected).inner instanceof z.ZodURL && typeof value === "string" && /[@?]/.test(value);
}

function hintFor(issue: Issue, { schema, tree }: Wrong): string | undefined {
  const given = valueAt(tree, issue.path);
  const expected = schemaAt(schema, issue.path);
  if (typeof given !== "string" || expected === undefined) return undefined;
  const meant = suggest(given, alternativesOf(expected));
  return meant === null ? undefined : `did you mean ${meant}?`;
}

function valueAt(tree: SettingTree, path: readonly (string | number)[]): unknown {
  const depth = path.findIndex((part) => typeof part === "number");
  const keys: KeyPath = (depth === -1 ? path : path.slice(0, depth)).map(String);
  const node = nodeAt(tree, keys);
  if (node === undefined || isTree(node)) return {};
  return Array.isArray(node.value) && depth !== -1 ? node.value[Number(path[depth])] : node.value;
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (isTable(value)) return "a table";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}

/** The schema without `optional` and default wrappers, and the default. */
export function unwrapped(schema: z.ZodType): { inner: z.ZodType; defaultValue?: unknown } {
  if (schema instanceof z.ZodOptional) return unwrapped(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    const { inner } = unwrapped(schema.unwrap() as z.ZodType);
    return { inner, defaultValue: schema.def.defaultValue };
  }
  return { inner: schema };
}

export function notesOf(schema: z.ZodType): KeyNotes {
  const own: KeyNotes = schema.meta() ?? {};
  const { inner } = unwrapped(schema);
  return inner === schema ? own : { ...notesOf(inner), ...own };
}

/** The schema of a key, also of one that only a catch-all describes. */
export function memberOf(object: z.ZodObject, key: string): z.ZodType | undefined {
  const shape: Record<string, z.ZodType> = object.shape;
  const { catchall } = object.def;
  if (Object.hasOwn(shape, key)) return shape[key];
  return catchall instanceof z.ZodNever ? undefined : (catchall as z.ZodType | undefined);
}

function schemaAt(schema: z.ZodType, path: readonly PropertyKey[]): z.ZodType | undefined {
  const [part, ...rest] = path;
  if (part === undefined) return schema;
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodObject) {
    const next = memberOf(inner, String(part));
    return next === undefined ? undefined : schemaAt(next, rest);
  }
  if (inner instanceof z.ZodRecord) return schemaAt(inner.valueType as z.ZodType, rest);
  if (inner instanceof z.ZodArray) return schemaAt(inner.element as z.ZodType, rest);
  if (inner instanceof z.ZodUnion)
    for (const option of inner.options as z.ZodType[]) {
      const found = schemaAt(option, path);
      if (found !== undefined) return found;
    }
  return undefined;
}

/** Describes the permitted values: `an integer, 1 or more`, `low, medium or high`. */
export function describeType(schema: z.ZodType): string {
  const words = alternativesOf(schema);
  return words.length === 1 ? words.join() : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function alternativesOf(schema: z.ZodType): string[] {
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodUnion) return (inner.options as z.ZodType[]).flatMap(alternativesOf);
  if (inner instanceof z.ZodEnum) return inner.options.map(String);
  if (inner instanceof z.ZodBoolean) return ["true", "false"];
  return [describeKind(inner)];
}

function describeKind(schema: z.ZodType): string {
  if (schema instanceof z.ZodNumber) return describeNumber(schema);
  if (schema instanceof z.ZodArray)
    return schema.element instanceof z.ZodObject ? "a list of tables" : "a list of strings";
  if (schema instanceof z.ZodObject) return `a table with ${Object.keys(schema.shape).join(", ")}`;
  if (schema instanceof z.ZodRecord)
    return unwrapped(schema.valueType as z.ZodType).inner instanceof z.ZodString
      ? "a table of strings"
      : "a table of tables";
  if (schema instanceof z.ZodPipe) return "a table";
  if (schema instanceof z.ZodURL) return "an http or https URL";
  if (schema instanceof z.ZodString && (schema.minLength ?? 0) > 0) return "a non-empty string";
  return "a string";
}

function describeNumber(schema: z.ZodNumber): string {
  if (schema.format === null)
    return `${takesZero(schema) ? "a number from 0" : "a number above 0, up"} to ${schema.maxValue}`;
  return describeInteger(schema);
}

function takesZero(schema: z.ZodNumber): boolean {
  return schema.safeParse(0).success;
}

function describeInteger({ minValue, maxValue }: z.ZodNumber): string {
  const isBounded = maxValue !== null && maxValue < Number.MAX_SAFE_INTEGER;
  return isBounded ? `an integer from ${minValue} to ${maxValue}` : `an integer, ${minValue} or more`;
}
