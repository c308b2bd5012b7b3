import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BrigError } from "../errors.js";
import { packageRoot } from "../package-root.js";

/** `sandbox-policies/` of this package. */
export const policyDirectory: string = join(packageRoot, "sandbox-policies");

/** Brig's system call filter as the engine takes it in SecurityOpt: one line of JSON. */
export async function loadSeccompProfile(directory: string = policyDirectory): Promise<string> {
  const file = join(directory, "seccomp.json");
  try {
    return JSON.stringify(JSON.parse(await readFile(file, "utf8")));
  } catch (cause) {
    throw new BrigError(`cannot read the system call filter ${file}`, {
      code: "policy.invalid",
      hint: "the file is part of the package: install brig again",
      cause,
    });
  }
}
