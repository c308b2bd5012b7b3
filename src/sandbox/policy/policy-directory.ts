import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { packageRoot } from "../../package-root.js";
import type { Policy } from "./policy.js";

export const policyDirectory: string = join(packageRoot, "sandbox-policies");

const SECCOMP_FILES = { brig: "seccomp.json", "full-access": "seccomp-full-access.json" } as const;

/** A seccomp filter of brig as a line of JSON for the engine's SecurityOpt; "" for the engine's own. */
export async function loadSeccompProfile(
  filter: Policy["seccomp"],
  directory: string = policyDirectory,
): Promise<string> {
  if (filter === "engine-default") return "";
  const file = join(directory, SECCOMP_FILES[filter]);
  try {
    return JSON.stringify(JSON.parse(readFileSync(file, "utf8")));
  } catch (cause) {
    throw new BrigError(`cannot read the system call filter ${file}`, {
      code: "policy.invalid",
      hint: "the file is part of brig's package: install brig again",
      cause,
    });
  }
}

export function refusedPolicyFile(where: string, reason: string, cause?: unknown): BrigError {
  return new BrigError(`the policy file ${where} ${reason}`, {
    code: "policy.invalid",
    hint: "brig never runs without the policy that was asked for",
    cause,
  });
}
