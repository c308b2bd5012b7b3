import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, TomlError } from "smol-toml";
import { BrigError } from "../../errors.js";
import { extendedDocument, type PolicyDocument } from "./file/extended-document.js";
import { type PolicyProblem, policyProblems } from "./file/policy-problems.js";
import type { SandboxMode } from "./modes.js";
import { type Policy, policySchema } from "./policy.js";
import { policyDirectory } from "./policy-directory.js";
import { refusedPolicyFile } from "./refused-policy-file.js";

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
  return { kind: "invalid", problems: policyProblems(parsed.error, document), cause: parsed.error };
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
