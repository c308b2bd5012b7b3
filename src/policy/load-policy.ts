import { join, resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { BrigError } from "../errors.js";
import { readTextFile } from "../lib/bounded-file.js";
import { isSandboxMode, SANDBOX_MODES } from "./modes.js";
import { type LoadedPolicy, type Policy, policySchema } from "./policy.js";
import { policyDirectory } from "./policy-directory.js";
import { policyProblems } from "./policy-problems.js";

const POLICY_MAX_BYTES = 1024 * 1024;

/**
 * Reads a policy: a mode by name, or a file if the argument has a slash or ends in `.toml`. Error:
 * `policy.invalid` for anything wrong; there is no default to fall back to.
 */
export async function loadPolicy(nameOrFile: string): Promise<LoadedPolicy> {
  const file = policyFile(nameOrFile);
  return { name: nameOrFile, file, policy: parsePolicy(await readPolicyFile(file), file) };
}

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

function policyFile(nameOrFile: string): string {
  if (isSandboxMode(nameOrFile)) return join(policyDirectory, `${nameOrFile}.toml`);
  if (nameOrFile.includes("/") || nameOrFile.endsWith(".toml")) return resolve(nameOrFile);
  throw new BrigError(`"${nameOrFile}" is not a sandbox mode`, {
    code: "policy.invalid",
    hint: `use one of ${SANDBOX_MODES.join(", ")}, or the path of a policy file`,
  });
}

async function readPolicyFile(file: string): Promise<string> {
  const read = await readTextFile(file, POLICY_MAX_BYTES);
  if (read.kind === "text") return read.text;
  if (read.kind === "missing") throw refused(file, "does not exist");
  throw refused(file, read.reason, read.cause);
}

function parseToml(toml: string, file: string): unknown {
  try {
    return parse(toml);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [reason] = cause.message.replace(/^Invalid TOML document: /, "").split("\n");
    throw refused(`${file}:${cause.line}:${cause.column}`, `is not TOML: ${reason}`, cause);
  }
}

function refused(where: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`the policy file ${where} ${reason}`, {
    code: "policy.invalid",
    hint: "brig never runs without the policy that was asked for",
    cause,
  });
}
