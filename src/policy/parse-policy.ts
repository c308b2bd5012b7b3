import { join } from "node:path";
import { parse, TomlError } from "smol-toml";
import { BrigError } from "../errors.js";
import { policyProblems } from "./file/policy-problems.js";
import { type Policy, policySchema } from "./policy.js";
import { policyDirectory } from "./policy-directory.js";
import { refusedPolicyFile } from "./refused-policy-file.js";

/** Parses the text of a policy. `file` is only used in messages. */
export function parsePolicy(toml: string, file: string): Policy {
  const document = parseToml(toml, file);
  const parsed = policySchema.safeParse(document);
  if (parsed.success) return parsed.data;
  const lines = policyProblems(parsed.error, document).map((line) => `  ${line}`);
  throw new BrigError([`${file} is not a valid policy:`, ...lines].join("\n"), {
    code: "policy.invalid",
    hint: `every field is required, and unknown ones are refused; ${join(policyDirectory, "README.md")} lists them`,
    cause: parsed.error,
  });
}

function parseToml(toml: string, file: string): unknown {
  try {
    return parse(toml);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [reason] = cause.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw refusedPolicyFile(`${file}:${cause.line}:${cause.column}`, `is not TOML: ${reason}`, cause);
  }
}
