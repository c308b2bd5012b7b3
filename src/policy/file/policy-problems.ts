import type { z } from "zod";
import { suggest } from "../../lib/suggest.js";
import { policySchema } from "../policy.js";

type Issue = z.core.$ZodIssue;

/** One line for each problem. */
export function policyProblems(error: z.ZodError, document: unknown): string[] {
  return error.issues.flatMap((issue) => problemsOf(issue, document));
}

function problemsOf(issue: Issue, document: unknown): string[] {
  const path = fieldName(issue.path);
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => unknownField(fieldName([...issue.path, key]), key));
  if (issue.code === "invalid_type" && valueAt(document, issue.path) === undefined)
    return [`${path} is missing`];
  if (issue.code === "invalid_type") return [`${path} must be ${typeName(issue.expected)}`];
  if (issue.code === "invalid_value")
    return [`${path} must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`];
  if (issue.code === "too_small") return [`${path} must be ${issue.minimum} or more`];
  if (issue.code === "too_big") return [`${path} must be ${issue.maximum} or less`];
  return [path === "" ? issue.message : `${path}: ${issue.message}`];
}

function unknownField(name: string, key: string): string {
  const meant = suggest(key, fieldNames());
  return `${name} is not a field of a policy${meant === null || meant === key ? "" : `; did you mean ${meant}?`}`;
}

function fieldNames(): string[] {
  const { shape } = policySchema;
  const inTables = [shape.workspace, shape.limits, shape.overrides, shape.tmpfs.element];
  return [...Object.keys(shape), ...inTables.flatMap((table) => Object.keys(table.shape))];
}

function fieldName(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (name, part) =>
      typeof part === "number" ? `${name}[${part}]` : `${name}${name === "" ? "" : "."}${String(part)}`,
    "",
  );
}

function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, part) =>
      typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[part] : undefined,
    document,
  );
}

const typeNames: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a table",
};

function typeName(expected: string): string {
  return typeNames[expected] ?? expected;
}
