import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BrigError } from "../errors.js";

/** `sandbox-policies/` of this package: the same two steps up from src/policy and from dist/policy. */
export const policyDirectory: string = fileURLToPath(new URL("../../sandbox-policies", import.meta.url));

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
