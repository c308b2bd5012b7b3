import type { z } from "zod";
import { type JsonNode, JsonSyntaxError, positionOf, readJson } from "./json-reader.js";

/** Arguments that do not match the schema of a tool. */
export class InvalidArguments extends Error {
  readonly issues: readonly z.core.$ZodIssue[];
  readonly tool: string;

  constructor(error: z.ZodError, tool: string) {
    super(error.message, { cause: error });
    this.issues = error.issues;
    this.tool = tool;
  }
}

/** The syntax error of a text in serde's words, which models know from Codex; null for valid JSON. */
export function syntaxErrorText(text: string): string | null {
  const read = tryReadJson(text);
  return read instanceof JsonSyntaxError ? `${read.message} at ${positionOf(text, read.at)}` : null;
}

/**
 * The first thing that is wrong with arguments, in serde's words. `text` is the JSON that a model sent, or
 * null if a program passed the arguments; only the former has a line and a column.
 */
export function argumentErrorText(invalid: InvalidArguments, args: unknown, text: string | null): string {
  const source = text ?? JSON.stringify(args) ?? "null";
  const read = tryReadJson(source);
  // `JSON.parse` accepts texts that serde does not, e.g. with a key twice. These have no positions.
  const root = read instanceof JsonSyntaxError ? null : read;
  const errors = invalid.issues.map((issue) => errorOf(issue, { root, tool: invalid.tool }));
  const [first] = errors.toSorted((a, b) => a.at - b.at);
  if (first === undefined) return invalid.message;
  return text === null ? first.message : `${first.message} at ${positionOf(source, first.at)}`;
}

function tryReadJson(text: string): JsonNode | JsonSyntaxError {
  try {
    return readJson(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error;
    throw error;
  }
}

function errorOf(
  issue: z.core.$ZodIssue,
  { root, tool }: { root: JsonNode | null; tool: string },
): { message: string; at: number } {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  const parent = path
    .slice(0, -1)
    .reduce<JsonNode | undefined>((at, part) => at?.members.get(part), root ?? undefined);
  const name = path.at(-1);
  const node = name === undefined ? (root ?? undefined) : parent?.members.get(name);
  if (issue.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    const at = node?.members.get(key)?.nameEnd ?? node?.end ?? 0;
    return { message: `unknown field \`${key}\``, at };
  }
  if (node === undefined && isMissing(issue))
    return { message: `missing field \`${name}\``, at: parent?.end ?? 0 };
  const expected = expectation(issue, name ?? tool);
  const found = node?.kind ?? "unit";
  const at = node?.at ?? 0;
  if (issue.code === "invalid_value" && found.startsWith("string "))
    return {
      message: `unknown variant \`${JSON.parse(found.slice(7))}\`, expected ${anyOf(issue.values)}`,
      at,
    };
  if (expected === null)
    return { message: name === undefined ? issue.message : `\`${path.join(".")}\`: ${issue.message}`, at };
  const isOutOfRange = issue.code === "too_small" || issue.code === "too_big";
  if (isOutOfRange && found.startsWith("integer"))
    return { message: `invalid value: ${found}, expected ${expected}`, at };
  // serde names a number with a fraction like this if it expects a string.
  const actual = expected === "a string" && found.startsWith("floating point") ? "number" : found;
  return { message: `invalid type: ${actual}, expected ${expected}`, at };
}

function isMissing(issue: z.core.$ZodIssue): boolean {
  return issue.path.length > 0 && (issue.code === "invalid_type" || issue.code === "invalid_value");
}

/** Codex's integer types of these parameters; every other number is a `u64`. */
const integerTypes: Readonly<Record<string, string>> = { session_id: "i32", max_output_tokens: "usize" };

function expectation(issue: z.core.$ZodIssue, name: string | number): string | null {
  const integer = Object.hasOwn(integerTypes, name) ? (integerTypes[name] ?? "u64") : "u64";
  if (issue.code === "too_small" || issue.code === "too_big")
    return issue.origin === "number" || issue.origin === "int" ? integer : null;
  if (issue.code === "invalid_value") return "string or map";
  if (issue.code !== "invalid_type") return null;
  switch (issue.expected) {
    case "string":
      return "a string";
    case "boolean":
      return "a boolean";
    case "array":
      return "a sequence";
    case "object":
      return `struct ${pascalCase(String(name))}Args`;
    case "int":
    case "number":
      return integer;
    default:
      return null;
  }
}

function pascalCase(name: string): string {
  return name.replace(/(?:^|_)([a-z\d])/g, (_, letter: string) => letter.toUpperCase());
}

/** `` `a` or `b` ``, or `` one of `a`, `b`, `c` ``. */
function anyOf(values: readonly unknown[]): string {
  const quoted = values.map((value) => `\`${String(value)}\``);
  return quoted.length <= 2 ? quoted.join(" or ") : `one of ${quoted.join(", ")}`;
}
