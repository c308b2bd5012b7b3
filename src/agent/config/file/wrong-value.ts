import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { suggest } from "../../../lib/suggest.js";
import { alternativesOf, describeType, notesOf, schemaAt, unwrapped } from "../settings/schema-words.js";
import { isTree, nodeAt, type SettingTree, sourceAt } from "../settings/setting-tree.js";
import { describeSource } from "../settings/sources.js";
import { formatKey, type KeyPath } from "./key-path.js";
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
