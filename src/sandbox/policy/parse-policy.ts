import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, TomlError } from "smol-toml";
import type { z } from "zod";
import { BrigError } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";
import { DEFAULT_MODE, isSandboxMode, SANDBOX_MODES, type SandboxMode } from "./modes.js";
import { type Policy, policySchema } from "./policy.js";
import { policyDirectory, refusedPolicyFile } from "./policy-directory.js";

/** The outcome of reading the text of a policy. */
export type PolicyReading =
  /** `document` has the settings of the text itself, and those of the mode `base`, if the text extends one. */
  | { kind: "valid"; policy: Policy; document: unknown; base: SandboxMode | null }
  | { kind: "invalid"; problems: readonly PolicyProblem[]; cause: unknown }
  | { kind: "not-toml"; line: number; column: number; reason: string; cause: unknown };

export function readPolicy(toml: string): PolicyReading {
  const written = readToml(toml);
  if (written.kind !== "document") return written;
  const extended = extendedDocument(written.document, modeDocument);
  if (extended.kind === "refused") return { kind: "invalid", problems: [extended.problem], cause: undefined };
  const { document, base } = extended;
  const parsed = policySchema.safeParse(document);
  if (parsed.success) return { kind: "valid", policy: parsed.data, document, base };
  return {
    kind: "invalid",
    problems: parsed.error.issues.flatMap((one) => problemsOf(one, document)),
    cause: parsed.error,
  };
}

/** Parses the text of a policy. `file` is only used in messages. */
export function parsePolicy(toml: string, file: string): Policy {
  const reading = readPolicy(toml);
  if (reading.kind === "valid") return reading.policy;
  if (reading.kind === "not-toml") {
    const { line, column, reason, cause } = reading;
    throw refusedPolicyFile(`${file}:${line}:${column}`, `is not TOML: ${reason}`, cause);
  }
  const lines = reading.problems.map(({ message }) => `  ${message}`);
  throw new BrigError([`${file} is not a valid policy:`, ...lines].join("\n"), {
    code: "policy.invalid",
    hint:
      'every field is required, unless the file begins with extends = "workspace-write" or another mode, and unknown ones are refused; ' +
      `${join(policyDirectory, "README.md")} lists them`,
    cause: reading.cause,
  });
}

type Written = { kind: "document"; document: unknown } | Extract<PolicyReading, { kind: "not-toml" }>;

function readToml(toml: string): Written {
  try {
    return { kind: "document", document: parse(toml) };
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [reason = ""] = cause.message.replace(/^Invalid TOML document: /, "").split("\n");
    return { kind: "not-toml", line: cause.line, column: cause.column, reason, cause };
  }
}

/** The file of a mode is part of brig, and tests check it. */
function modeDocument(mode: SandboxMode): PolicyDocument {
  return parse(readFileSync(join(policyDirectory, `${mode}.toml`), "utf8")) as PolicyDocument;
}

/** A policy as its file has it. */
type PolicyDocument = z.input<typeof policySchema>;

type Table = Readonly<Record<string, unknown>>;

/** `base` is null for a document that extends nothing. */
type Extended =
  | { kind: "whole"; document: unknown; base: SandboxMode | null }
  | { kind: "refused"; problem: PolicyProblem };

/**
 * A policy's document with all that it takes over from the mode of its `extends`. Only modes can be extended, so that what a policy
 * allows never depends on another file. Nothing gets looser by being taken over: protected names are only added to, and directories in
 * memory shrink with a smaller memory limit. Values of a wrong type stay, for the schema to refuse.
 */
function extendedDocument(document: unknown, readMode: (mode: SandboxMode) => PolicyDocument): Extended {
  if (!isTable(document) || document.extends === undefined) return { kind: "whole", document, base: null };
  const { extends: name, ...own } = document;
  if (typeof name !== "string" || !isSandboxMode(name)) return { kind: "refused", problem: unknownMode };
  const base = readMode(name);
  const scale = memoryScale(own.limits, base.limits);
  return {
    kind: "whole",
    base: name,
    document: {
      ...base,
      ...own,
      workspace: mergedWorkspace(own.workspace, { base, readMode }),
      tmpfs: mergedTmpfs(
        own.tmpfs,
        base.tmpfs.map((entry) => ({ ...entry, sizeMb: scaled(entry.sizeMb, scale) })),
      ),
      limits: over(own.limits, { ...base.limits, shmMb: scaled(base.limits.shmMb, scale) }),
      overrides: over(own.overrides, base.overrides),
    },
  };
}

const unknownMode: PolicyProblem = {
  field: "extends",
  message: `extends must be one of ${SANDBOX_MODES.map((mode) => JSON.stringify(mode)).join(", ")}: a file cannot be extended`,
};

/** The table of the mode, with each key that is written replaced. */
function over(own: unknown, base: object): unknown {
  if (own === undefined) return base;
  return isTable(own) ? { ...base, ...own } : own;
}

/**
 * Has the protected names of both. A mode with a read-only workspace names none, so where the workspace becomes writable, those of
 * workspace-write are protected.
 */
function mergedWorkspace(
  own: unknown,
  { base, readMode }: { base: PolicyDocument; readMode: (mode: SandboxMode) => PolicyDocument },
): unknown {
  const workspace = over(own, base.workspace);
  if (!isTable(workspace) || !Array.isArray(workspace.protected)) return workspace;
  const becomesWritable = base.workspace.access === "ro" && workspace.access !== "ro";
  const names = becomesWritable ? readMode(DEFAULT_MODE).workspace.protected : base.workspace.protected;
  return { ...workspace, protected: [...new Set([...names, ...workspace.protected])] };
}

/**
 * An entry with the path of one of the mode's has what it does not say itself from that. The file's own entries come first, so that
 * messages number them as the file does.
 */
function mergedTmpfs(own: unknown, base: PolicyDocument["tmpfs"]): unknown {
  if (own === undefined) return base;
  if (!Array.isArray(own)) return own;
  const written = own.map((entry: unknown) => {
    const same = base.find(({ path }) => isTable(entry) && entry.path === path);
    return same === undefined ? entry : over(entry, same);
  });
  const paths = new Set(own.map((entry: unknown) => (isTable(entry) ? entry.path : undefined)));
  return [...written, ...base.filter(({ path }) => !paths.has(path))];
}

function memoryScale(own: unknown, base: PolicyDocument["limits"]): number {
  const memoryMb = isTable(own) ? own.memoryMb : undefined;
  const isSmaller = typeof memoryMb === "number" && memoryMb > 0 && memoryMb < base.memoryMb;
  return isSmaller ? memoryMb / base.memoryMb : 1;
}

function scaled(sizeMb: number, scale: number): number {
  return Math.max(1, Math.floor(sizeMb * scale));
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Issue = z.core.$ZodIssue;

/** A mistake in a policy, in words for people. */
interface PolicyProblem {
  /** The setting, such as `limits.pids` or `tmpfs[0].sizeMb`; empty for the whole policy. */
  field: string;
  message: string;
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
  if (issue.code === "invalid_type") return `${field} must be ${typeNames[issue.expected] ?? issue.expected}`;
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
