import { join, resolve } from "node:path";
import { BrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import { compiledPolicies } from "./compiled-policies.js";
import { isSandboxMode, SANDBOX_MODES } from "./modes.js";
import type { LoadedPolicy, Policy } from "./policy.js";
import { policyDirectory, refusedPolicyFile } from "./policy-directory.js";

const POLICY_MAX_BYTES = 1024 * 1024;

/**
 * Reads a policy: a mode by name, or a file if the argument has a slash or ends in `.toml`. Error:
 * `policy.invalid` for anything wrong; there is no default to fall back to.
 */
export async function loadPolicy(nameOrFile: string): Promise<LoadedPolicy> {
  const { toml, file } = await readPolicyText(nameOrFile);
  return { name: nameOrFile, file, policy: await policyOf(toml, file) };
}

/** The text of a mode's file, or of another one. Error: `policy.invalid`. */
export async function readPolicyText(nameOrFile: string): Promise<{ toml: string; file: string }> {
  const file = policyFile(nameOrFile);
  return { toml: await readPolicyFile(file), file };
}

/**
 * Parses a policy file that the build has not parsed. Loading the parser and the schema takes longer than all
 * the rest.
 */
async function policyOf(toml: string, file: string): Promise<Policy> {
  const compiled = compiledPolicies.find((one) => one.toml === toml);
  if (compiled !== undefined) return JSON.parse(compiled.json);
  const { parsePolicy } = await import("./parse-policy.js");
  return parsePolicy(toml, file);
}

function policyFile(nameOrFile: string): string {
  if (isSandboxMode(nameOrFile)) return join(policyDirectory, `${nameOrFile}.toml`);
  if (nameOrFile.includes("/") || nameOrFile.endsWith(".toml")) return resolve(nameOrFile);
  throw new BrigError(`"${nameOrFile}" is not a sandbox mode`, {
    code: "policy.invalid",
    hint: `use one of ${SANDBOX_MODES.join(", ")}, or the path of a policy file`,
  });
}

/** Error: `policy.invalid`. */
export async function readPolicyFile(file: string): Promise<string> {
  const read = await readTextFile(file, POLICY_MAX_BYTES);
  if (read.kind === "text") return read.text;
  if (read.kind === "missing") throw refusedPolicyFile(file, "does not exist");
  throw refusedPolicyFile(file, read.reason, read.cause);
}
