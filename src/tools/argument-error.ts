import type { z } from "zod";
import { JsonFault, type JsonNode, placeOf, readJson } from "./json-reader.js";

/** What a tool's arguments had to be and are not, as the tool found it. */
export class UnfitArguments extends Error {
  readonly issues: readonly z.core.$ZodIssue[];
  readonly tool: string;

  constructor(error: z.ZodError, tool: string) {
    super(error.message, { cause: error });
    this.issues = error.issues;
    this.tool = tool;
  }
}

/** What is wrong with a text that is no JSON, in the words models know from serde; null for one that is. */
export function syntaxFault(text: string): string | null {
  try {
    readJson(text);
    return null;
  } catch (error) {
    if (error instanceof JsonFault) return `${error.message} at ${placeOf(text, error.at)}`;
    throw error;
  }
}

/** What is wrong with arguments first, in serde's words. `text` is the JSON they came as, null where they came from a program. */
export function argumentFault(unfit: UnfitArguments, args: unknown, text: string | null): string {
  const source = text ?? JSON.stringify(args) ?? "null";
  const root = nodeOf(source);
  const faults = unfit.issues.map((issue) => faultOf(issue, { root, tool: unfit.tool }));
  const [first] = faults.toSorted((a, b) => a.at - b.at);
  if (first === undefined) return unfit.message;
  return text === null ? first.words : `${first.words} at ${placeOf(source, first.at)}`;
}

interface Fault {
  words: string;
  at: number;
}

/** A text that only JavaScript takes for JSON has no places. */
function nodeOf(text: string): JsonNode | null {
  try {
    return readJson(text);
  } catch (error) {
    if (error instanceof JsonFault) return null;
    throw error;
  }
}

function faultOf(issue: z.core.$ZodIssue, { root, tool }: { root: JsonNode | null; tool: string }): Fault {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  const parent = path
    .slice(0, -1)
    .reduce<JsonNode | undefined>((at, part) => at?.members.get(part), root ?? undefined);
  const name = path.at(-1);
  const node = name === undefined ? (root ?? undefined) : parent?.members.get(name);
  if (issue.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    const at = node?.members.get(key)?.nameEnd ?? node?.end ?? 0;
    return { words: `unknown field \`${key}\``, at };
  }
  if (node === undefined && isMissing(issue))
    return { words: `missing field \`${name}\``, at: parent?.end ?? 0 };
  const expected = expectation(issue, name ?? tool);
  const found = node?.kind ?? "unit";
  const at = node?.at ?? 0;
  if (issue.code === "invalid_value" && found.startsWith("string "))
    return {
      words: `unknown variant \`${JSON.parse(found.slice(7))}\`, expected ${listed(issue.values)}`,
      at,
    };
  if (expected === null)
    return { words: name === undefined ? issue.message : `\`${path.join(".")}\`: ${issue.message}`, at };
  const isOutOfRange = issue.code === "too_small" || issue.code === "too_big";
  if (isOutOfRange && found.startsWith("integer"))
    return { words: `invalid value: ${found}, expected ${expected}`, at };
  // serde calls a number with a fraction so where it wants a text.
  const called = expected === "a string" && found.startsWith("floating point") ? "number" : found;
  return { words: `invalid type: ${called}, expected ${expected}`, at };
}

function isMissing(issue: z.core.$ZodIssue): boolean {
  return issue.path.length > 0 && (issue.code === "invalid_type" || issue.code === "invalid_value");
}

/** What Codex's programs hold these parameters in; every other number is a `u64`. */
const integers: Readonly<Record<string, string>> = { session_id: "i32", max_output_tokens: "usize" };

function expectation(issue: z.core.$ZodIssue, name: string | number): string | null {
  const integer = Object.hasOwn(integers, name) ? (integers[name] ?? "u64") : "u64";
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

/** `` `a` or `b` ``, and `` one of `a`, `b`, `c` ``. */
function listed(values: readonly unknown[]): string {
  const quoted = values.map((value) => `\`${String(value)}\``);
  return quoted.length <= 2 ? quoted.join(" or ") : `one of ${quoted.join(", ")}`;
}
