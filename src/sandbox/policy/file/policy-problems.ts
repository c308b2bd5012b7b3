import type { z } from "zod";
import { suggest } from "../../../lib/suggest.js";
import { policySchema } from "../policy.js";

type Issue = z.core.$ZodIssue;

/** A mistake in a policy, in words for people. */
export interface PolicyProblem {
  /** The setting, such as `limits.pids` or `tmpfs[0].sizeMb`; empty for the whole policy. */
  field: string;
  message: string;
}

export function policyProblems(error: z.ZodError, document: unknown): PolicyProblem[] {
  return error.issues.flatMap((issue) => problemsOf(issue, document));
}

function problemsOf(issue: Issue, document: unknown): PolicyProblem[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => {
      const field = fieldName([...issue.path, key]);
      return { field, message: unknownField(field, key) };
    });
  const field = fieldName(issue.path);
  return [{ field, message: messageOf(issue, { field, document }) }];
}

function messageOf(
  issue: Exclude<Issue, { code: "unrecognized_keys" }>,
  { field, document }: { field: string; document: unknown },
): string {
  const isWrongValue = issue.code === "invalid_type" || issue.code === "invalid_value";
  if (isWrongValue && valueAt(document, issue.path) === undefined) return `${field} is missing`;
  if (issue.code === "invalid_type") return `${field} must be ${typeName(issue.expected)}`;
  if (issue.code === "invalid_value")
    return `${field} must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
  if (issue.code === "too_small") return `${field} must be ${issue.minimum} or more`;
  if (issue.code === "too_big") return `${field} must be ${issue.maximum} or less`;
  return field === "" ? issue.message : `${field}: ${issue.message}`;
}

function unknownField(name: string, key: string): string {
  const meant = suggest(key, fieldNames());
  return `${name} is not a field of a policy${meant === null || meant === key ? "" : `; did you mean ${meant}?`}`;
}

function fieldNames(): string[] {
  const { shape } = policySchema;
  const inTables = [shape.workspace, shape.limits, shape.overrides, shape.tmpfs.element];
  return ["extends", ...Object.keys(shape), ...inTables.flatMap((table) => Object.keys(table.shape))];
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
